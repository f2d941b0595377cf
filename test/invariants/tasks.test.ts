import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { attemptId } from '../../src/domain/dispatch/dispatch-ids.ts'
import { dispatchOutbox } from '../../src/domain/dispatch/dispatch-outbox.table.ts'
import { isRunOver, type RunRow, runs } from '../../src/domain/runs/runs.table.ts'
import { depSatisfaction } from '../../src/domain/tasks/dep-satisfaction.table.ts'
import { taskAttempts } from '../../src/domain/tasks/task-attempts.table.ts'
import { isTaskOver, type TaskRow, taskRank, tasks } from '../../src/domain/tasks/tasks.table.ts'
import { timers } from '../../src/domain/timers/timers.table.ts'
import type { State } from '../../src/engine/fold/state.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Verdict } from '../../src/model/event.ts'
import type { AnyRow } from '../../src/model/table.ts'
import { Bench } from '../../src/testing/histories/fold.ts'
import { type DeliveredHistory, deliveries, effort, histories } from '../../src/testing/histories/histories.ts'

/** Looks at the state after every single event of a delivery. */
function watch({ events }: DeliveredHistory, look: (state: State, event: Envelope, verdict: Verdict) => void): void {
  const bench = new Bench()
  bench.fold(events, (event, verdict) => look(bench.state, event, verdict))
}

const allTasks = (state: State): TaskRow[] => [...state.hot(tasks).all()]
const edgesOf = (state: State, runId: string) => [...state.hot(depSatisfaction).under(runId)]
const upstreamOf = (state: State, task: TaskRow) =>
  edgesOf(state, task.run_id).filter((edge) => edge.downstream_task_key === task.task_key)
const taskNamed = (state: State, runId: string, key: string) => state.hot(tasks).get(runId, key) as TaskRow
const name = (row: AnyRow): string => `${row['run_id']} ${row['task_key'] ?? ''}`

const hasBegun = (task: TaskRow): boolean => ['DISPATCHED', 'RUNNING', 'RETRY_WAIT', 'SUCCEEDED', 'FAILED'].includes(task.state)

describe('readiness', () => {
  test('[T5][I7] nothing is dispatched, runs or has run before all its upstream edges are SUCCESS', () => {
    const property = fc.property(deliveries(), (delivery) => {
      watch(delivery, (state) => {
        for (const task of allTasks(state)) {
          const upstream = upstreamOf(state, task)
          const successes = upstream.filter((edge) => edge.resolution === 'SUCCESS').length
          // Part of what it waits for may be in a part of the plan that is still on its way.
          const run = state.hot(runs).get(task.run_id) as RunRow
          if (run.plan_parts_seen === run.plan_parts) assert.equal(task.deps_total, upstream.length)
          assert.equal(task.deps_satisfied_count, successes)
          if (task.state === 'READY' || hasBegun(task))
            assert.equal(successes, upstream.length, `${name(task)} is ${task.state}`)
          if (task.state === 'BLOCKED') assert(successes < upstream.length, `${name(task)} is BLOCKED`)
          for (const edge of upstream) assert.equal(edge.satisfied, edge.resolution === 'SUCCESS')
        }
      })
    })
    fc.assert(property, effort)
  })
})

describe('attempts', () => {
  test('[T4][I4] the attempt and rank of a task never go back', () => {
    const property = fc.property(deliveries(), (delivery) => {
      const last = new Map<string, readonly [number, number]>()
      watch(delivery, (state) => {
        for (const task of allTasks(state)) {
          const [attempt, rank] = last.get(name(task)) ?? [0, 0]
          assert(task.attempt >= attempt, `${name(task)} is back at attempt ${task.attempt}`)
          assert(task.attempt > attempt || taskRank[task.state] >= rank, `${name(task)} is back at ${task.state}`)
          last.set(name(task), [task.attempt, taskRank[task.state]])
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[T6][I8] attempts are 1 to n without gaps, none beyond the allowed number, and only the last may be under way', () => {
    const property = fc.property(deliveries(), (delivery) => {
      watch(delivery, (state) => {
        for (const task of allTasks(state)) {
          const attempts = [...state.hot(taskAttempts).under(task.run_id, task.task_key)].sort((a, b) => a.attempt - b.attempt)
          const numbers = attempts.map((row) => row.attempt)
          assert.deepEqual(
            numbers,
            numbers.map((_, index) => index + 1),
          )
          assert(attempts.length <= task.max_attempts)
          const isUnderWay = task.state === 'DISPATCHED' || task.state === 'RUNNING'
          const open = attempts.filter((row) => row.outcome === null).map((row) => row.attempt)
          assert.deepEqual(open, isUnderWay ? [task.attempt] : [])
          if (hasBegun(task)) assert.equal(task.attempt, attempts.length)
          const dispatched = [...state.hot(dispatchOutbox).under(task.run_id, task.task_key)].map((row) => row.attempt)
          assert.deepEqual(dispatched.sort(), numbers)
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[F6][I9] a fact about an earlier attempt, another attempt id or a task that is over changes nothing', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const bench = new Bench()
      const before = new Map<string, { attempt: number; over: boolean; waiting: boolean }>()
      bench.fold(events, (event, verdict) => {
        const { run_id, task_key, attempt, attempt_id } = event.payload as {
          run_id: string
          task_key: string
          attempt: number
          attempt_id?: string
        }
        const task = before.get(`${run_id} ${task_key}`)
        const isStale =
          task !== undefined &&
          (attempt < task.attempt || (attempt === task.attempt && task.waiting && attempt_id !== undefined))
        const isForged = attempt_id !== undefined && attempt_id !== attemptId(run_id, task_key, attempt)
        if (attempt !== undefined && (isStale || task?.over || isForged)) {
          assert.notEqual(verdict.kind, 'applied', `${event.event_type} of attempt ${attempt}`)
        }
        if (verdict.kind !== 'applied')
          assert.deepEqual(changedTables(bench.state), [], `${event.event_type} was ${verdict.kind}`)
        forgetChanges(bench.state)
        for (const row of allTasks(bench.state)) {
          before.set(name(row), { attempt: row.attempt, over: isTaskOver(row.state), waiting: row.state === 'RETRY_WAIT' })
        }
      })
      for (const row of [...bench.state.hot(taskAttempts).all(), ...bench.state.hot(dispatchOutbox).all()]) {
        assert.equal(row.attempt_id, attemptId(row.run_id, row.task_key, row.attempt))
      }
    })
    fc.assert(property, effort)
  })
})

/** What an event may leave behind without having been applied: itself, and the note that its run key was taken. */
const notes = new Set(['parked_events', 'run_key_conflicts'])

function changedTables(state: State): string[] {
  const hot = [...state.hotTables].filter(([, rows]) => rows.dirty.size > 0 || rows.removed.size > 0)
  const cold = [...state.coldTables].filter(([, rows]) => rows.dirty.size > 0)
  return [...hot, ...cold].map(([table]) => table.name).filter((table) => !notes.has(table))
}

function forgetChanges(state: State): void {
  for (const rows of [...state.hotTables.values(), ...state.coldTables.values()]) rows.clearChanges()
}

describe('ends', () => {
  test('[T8] every edge tells how its upstream ended', () => {
    const property = fc.property(deliveries(), (delivery) => {
      watch(delivery, (state) => {
        for (const run of state.hot(runs).all()) {
          for (const edge of edgesOf(state, run.run_id)) {
            const upstream = taskNamed(state, run.run_id, edge.upstream_task_key) as TaskRow | undefined
            const expected =
              upstream !== undefined && isTaskOver(upstream.state) ? upstream.state.replace('SUCCEEDED', 'SUCCESS') : null
            assert.equal(edge.resolution, expected, `${edge.upstream_task_key} → ${edge.downstream_task_key}`)
            assert.equal(edge.satisfied_at, expected === null ? null : (upstream?.finished_at ?? null))
          }
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[T8] below a task that ended without success everything has ended too, and names the first cause', () => {
    const property = fc.property(deliveries(), (delivery) => {
      watch(delivery, (state) => {
        for (const task of allTasks(state)) {
          const causes = badAncestors(state, task)
          if (causes.length > 0)
            assert(task.state === 'SKIPPED' || task.state === 'CANCELLED', `${name(task)} is ${task.state}`)
          if (task.state === 'SKIPPED' && !isFlawed(state, task) && !isInTheWay(task))
            assert(causes.length > 0, `${name(task)} has no cause`)
          if ((task.state !== 'SKIPPED' && task.state !== 'CANCELLED') || task.cause_task_key === null) continue
          const first = causes.sort((a, b) =>
            (a.cause_event_id as string) < (b.cause_event_id as string) ? -1 : 1,
          )[0] as TaskRow
          assert.deepEqual([task.cause_task_key, task.cause_event_id], [first.task_key, first.cause_event_id])
          assert.equal(task.finished_at, first.finished_at)
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[T4][I10] the state of a task or run that has ended never changes, and nothing of an ended run changes at all', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const bench = new Bench()
      const ended = new Map<string, string>()
      bench.fold(events, (event) => {
        for (const [table, rows] of bench.state.hotTables) {
          for (const row of rows.dirty) {
            const run = ended.get(`${row['run_id']}`)
            // A chunk is not of its run: it may be heard of when the run is over, and then follows it at once.
            if (run === undefined || table.name === 'backfill_chunks') continue
            assert.fail(`${event.event_type} changed ${table.name} ${name(row)} of a run that was ${run}`)
          }
        }
        forgetChanges(bench.state)
        for (const task of allTasks(bench.state)) {
          assert.equal(task.state, ended.get(name(task)) ?? task.state)
          if (isTaskOver(task.state)) ended.set(name(task), task.state)
        }
        for (const run of bench.state.hot(runs).all()) if (isRunOver(run.state)) ended.set(run.run_id, run.state)
      })
    })
    fc.assert(property, effort)
  })
})

/** Tasks above this one that ended badly by themselves: their causes, not their consequences. */
function badAncestors(state: State, task: TaskRow, seen = new Set<string>()): TaskRow[] {
  if (isFlawed(state, task)) return []
  return upstreamOf(state, task).flatMap((edge) => {
    const upstream = state.hot(tasks).get(task.run_id, edge.upstream_task_key)
    if (upstream === undefined || seen.has(upstream.task_key)) return []
    seen.add(upstream.task_key)
    const attempt = state.hot(taskAttempts).get(upstream.run_id, upstream.task_key, upstream.attempt)
    const endedItself =
      isInTheWay(upstream) ||
      ((upstream.state === 'FAILED' || upstream.state === 'CANCELLED') && attempt?.row_version === upstream.cause_event_id)
    return [...(endedItself ? [upstream] : []), ...badAncestors(state, upstream, seen)]
  })
}

/** True if a task was skipped because another run was making its partition. */
const isInTheWay = ({ overlap_run_id }: TaskRow): boolean => overlap_run_id !== null

const isFlawed = (state: State, task: TaskRow): boolean => (state.hot(runs).get(task.run_id) as RunRow).error !== null

describe('runs', () => {
  test('[T10][I10] the counters of a run are the counts of its tasks, and it is over exactly when they all are', () => {
    const property = fc.property(deliveries(), (delivery) => {
      watch(delivery, (state) => {
        for (const run of state.hot(runs).all()) {
          const rows = [...state.hot(tasks).under(run.run_id)]
          const count = (wanted: string): number => rows.filter((task) => task.state === wanted).length
          assert.deepEqual(
            [run.tasks_total, run.tasks_succeeded, run.tasks_failed, run.tasks_skipped, run.tasks_cancelled],
            [rows.length, count('SUCCEEDED'), count('FAILED'), count('SKIPPED'), count('CANCELLED')],
          )
          const isPlanned = run.plan_parts > 0 && run.plan_parts_seen === run.plan_parts
          const isDone = rows.every((task) => isTaskOver(task.state)) && (isPlanned || run.cancel_requested_at !== null)
          assert.equal(isRunOver(run.state), isDone, `${run.run_id} is ${run.state}`)
          assert.equal(run.finished_at !== null, isDone)
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[T9][I10] once its cancellation was requested, a run starts nothing: no retry waits, nothing is ready or blocked', () => {
    const property = fc.property(deliveries(), (delivery) => {
      const attempts = new Map<string, number>()
      watch(delivery, (state) => {
        for (const run of state.hot(runs).all()) {
          if (run.cancel_requested_at === null) continue
          const states = new Set([...state.hot(tasks).under(run.run_id)].map((task) => task.state))
          for (const waiting of ['PLANNED', 'BLOCKED', 'READY', 'RETRY_WAIT'] as const)
            assert(!states.has(waiting), `a task is ${waiting}`)
          const started = [...state.hot(taskAttempts).under(run.run_id)].length
          assert.equal(started, attempts.get(run.run_id) ?? started)
          attempts.set(run.run_id, started)
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[T11] an alarm is set only while somebody waits for it', () => {
    const property = fc.property(deliveries(), (delivery) => {
      watch(delivery, (state) => {
        for (const timer of state.hot(timers).all()) {
          if (timer.run_id === null) continue
          assert(!isRunOver((state.hot(runs).get(timer.run_id) as RunRow).state), timer.timer_id)
          if (timer.task_key === null) continue
          const task = taskNamed(state, timer.run_id, timer.task_key)
          assert(!isTaskOver(task.state), timer.timer_id)
          if (timer.timer_type !== 'SLA_CHECK') assert.equal(timer.attempt, task.attempt, timer.timer_id)
          if (timer.timer_type === 'RETRY') assert.equal(task.state, 'RETRY_WAIT', timer.timer_id)
          if (timer.timer_type === 'HEARTBEAT_CHECK')
            assert(task.state === 'DISPATCHED' || task.state === 'RUNNING', timer.timer_id)
        }
      })
    })
    fc.assert(property, effort)
  })

  test('a history folded as it happened ends where the simulation ended', () => {
    const property = fc.property(histories(), ({ events, world }) => {
      const bench = new Bench()
      bench.fold(events)
      for (const run of world.runs) {
        const row = bench.state.hot(runs).get(run.runId)
        expect([run.runKey, row?.state]).toEqual([run.runKey, run.state])
        if (run.plan.flaw !== 'none' && run.plan.flaw !== 'a part is missing') continue
        for (const task of bench.state.hot(tasks).under(run.runId)) {
          const expected = run.tasks.get(task.task_key)
          expect([task.task_key, task.state, task.attempt]).toEqual([expected?.key, expected?.state, expected?.attempt])
        }
        if (run.planned) expect([...bench.state.hot(tasks).under(run.runId)].length).toBe(run.tasks.size)
      }
    })
    fc.assert(property, effort)
  })
})
