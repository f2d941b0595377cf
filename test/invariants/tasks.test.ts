import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { attemptId } from '../../src/domain/dispatch/identity.ts'
import { dispatchOutbox } from '../../src/domain/dispatch/dispatch-outbox.table.ts'
import { isRunOver, type RunRow, runs } from '../../src/domain/runs/runs.table.ts'
import { depSatisfaction } from '../../src/domain/tasks/dep-satisfaction.table.ts'
import { taskAttempts } from '../../src/domain/tasks/task-attempts.table.ts'
import { isTaskOver, type TaskRow, taskRank, tasks } from '../../src/domain/tasks/tasks.table.ts'
import { timers } from '../../src/domain/timers/timers.table.ts'
import type { State } from '../../src/engine/state.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { Verdict } from '../../src/model/event.ts'
import type { AnyRow } from '../../src/model/table.ts'
import { type Delivery, deliveries, effort, histories } from '../../src/testing/histories.ts'
import { Bench } from '../../src/testing/history-fold.ts'

/** Looks at the state after every single event of a delivery. */
function afterEach({ events }: Delivery, look: (state: State, event: Envelope, verdict: Verdict) => void): void {
  const bench = new Bench()
  bench.fold(events, (event, verdict) => look(bench.state, event, verdict))
}

const allTasks = (state: State): TaskRow[] => [...state.hot(tasks).all()]
const edgesOf = (state: State, runId: string) => [...state.hot(depSatisfaction).under(runId)]
const upstreamOf = (state: State, task: TaskRow) => edgesOf(state, task.run_id).filter((edge) => edge.downstream_task_key === task.task_key)
const taskNamed = (state: State, runId: string, key: string) => state.hot(tasks).get(runId, key) as TaskRow
const name = (row: AnyRow): string => `${row['run_id']} ${row['task_key'] ?? ''}`

const hasBegun = (task: TaskRow): boolean => ['DISPATCHED', 'RUNNING', 'RETRY_WAIT', 'SUCCEEDED', 'FAILED'].includes(task.state)

describe('readiness', () => {
  test('[INV-6] [I7] nothing is dispatched, runs or has run before all its upstream edges are SUCCESS', () => {
    const property = fc.property(deliveries(), (delivery) => {
      afterEach(delivery, (state) => {
        for (const task of allTasks(state)) {
          const upstream = upstreamOf(state, task)
          const successes = upstream.filter((edge) => edge.resolution === 'SUCCESS').length
          expect(task.deps_total, name(task)).toBe(upstream.length)
          expect(task.deps_satisfied_count, name(task)).toBe(successes)
          if (task.state === 'READY' || hasBegun(task)) expect(successes, `${name(task)} is ${task.state}`).toBe(upstream.length)
          if (task.state === 'BLOCKED') expect(successes, `${name(task)} is BLOCKED`).toBeLessThan(upstream.length)
          for (const edge of upstream) expect(edge.satisfied).toBe(edge.resolution === 'SUCCESS')
        }
      })
    })
    fc.assert(property, effort)
  })
})

describe('attempts', () => {
  test('[I4] the attempt and rank of a task never go back', () => {
    const property = fc.property(deliveries(), (delivery) => {
      const last = new Map<string, readonly [number, number]>()
      afterEach(delivery, (state) => {
        for (const task of allTasks(state)) {
          const [attempt, rank] = last.get(name(task)) ?? [0, 0]
          expect(task.attempt, name(task)).toBeGreaterThanOrEqual(attempt)
          if (task.attempt === attempt) expect(taskRank[task.state], name(task)).toBeGreaterThanOrEqual(rank)
          last.set(name(task), [task.attempt, taskRank[task.state]])
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[I8] attempts are 1 to n without gaps, none beyond the allowed number, and only the last may be under way', () => {
    const property = fc.property(deliveries(), (delivery) => {
      afterEach(delivery, (state) => {
        for (const task of allTasks(state)) {
          const attempts = [...state.hot(taskAttempts).under(task.run_id, task.task_key)].sort((a, b) => a.attempt - b.attempt)
          expect(attempts.map((row) => row.attempt)).toEqual(attempts.map((_, index) => index + 1))
          expect(attempts.length).toBeLessThanOrEqual(task.max_attempts)
          const under = attempts.filter((row) => row.outcome === null)
          const isUnderWay = task.state === 'DISPATCHED' || task.state === 'RUNNING'
          expect(under.map((row) => row.attempt)).toEqual(isUnderWay ? [task.attempt] : [])
          expect(attempts.every((row) => row.attempt_id === attemptId(row.run_id, row.task_key, row.attempt))).toBe(true)
          if (hasBegun(task)) expect(task.attempt).toBe(attempts.length)
          const dispatches = [...state.hot(dispatchOutbox).under(task.run_id, task.task_key)]
          expect(dispatches.map((row) => row.attempt).sort()).toEqual(attempts.map((row) => row.attempt))
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[INV-8] [I9] a fact about an earlier attempt, another attempt id or a task that is over changes nothing', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const bench = new Bench()
      const before = new Map<string, { attempt: number; over: boolean; waiting: boolean }>()
      bench.fold(events, (event, verdict) => {
        const { run_id, task_key, attempt, attempt_id } = event.payload as { run_id: string; task_key: string; attempt: number; attempt_id?: string }
        const task = before.get(`${run_id} ${task_key}`)
        const isStale = task !== undefined && (attempt < task.attempt || (attempt === task.attempt && task.waiting && attempt_id !== undefined))
        const isForged = attempt_id !== undefined && attempt_id !== attemptId(run_id, task_key, attempt)
        if (attempt !== undefined && (isStale || task?.over || isForged)) {
          expect(['ignored', 'duplicate', 'parked'], `${event.event_type} of attempt ${attempt}`).toContain(verdict.kind)
        }
        if (verdict.kind !== 'applied') expect(changedTables(bench.state), event.event_type).toEqual([])
        forgetChanges(bench.state)
        for (const row of allTasks(bench.state)) {
          before.set(name(row), { attempt: row.attempt, over: isTaskOver(row.state), waiting: row.state === 'RETRY_WAIT' })
        }
      })
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
  test('[INV-10] every edge tells how its upstream ended', () => {
    const property = fc.property(deliveries(), (delivery) => {
      afterEach(delivery, (state) => {
        for (const run of state.hot(runs).all()) {
          for (const edge of edgesOf(state, run.run_id)) {
            const upstream = taskNamed(state, run.run_id, edge.upstream_task_key) as TaskRow | undefined
            const expected = upstream !== undefined && isTaskOver(upstream.state) ? upstream.state.replace('SUCCEEDED', 'SUCCESS') : null
            expect(edge.resolution, `${edge.upstream_task_key} → ${edge.downstream_task_key}`).toBe(expected)
            expect(edge.satisfied_at).toBe(expected === null ? null : (upstream?.finished_at ?? null))
          }
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[INV-10] below a task that ended without success everything has ended too, and names the first cause', () => {
    const property = fc.property(deliveries(), (delivery) => {
      afterEach(delivery, (state) => {
        for (const task of allTasks(state)) {
          const causes = badAncestors(state, task)
          if (causes.length > 0) expect(['SKIPPED', 'CANCELLED'], name(task)).toContain(task.state)
          if (task.state === 'SKIPPED' && !isFlawed(state, task)) expect(causes.length, name(task)).toBeGreaterThan(0)
          if ((task.state !== 'SKIPPED' && task.state !== 'CANCELLED') || task.cause_task_key === null) continue
          const first = causes.sort((a, b) => ((a.cause_event_id as string) < (b.cause_event_id as string) ? -1 : 1))[0]
          expect([task.cause_task_key, task.cause_event_id], name(task)).toEqual([first?.task_key, first?.cause_event_id])
          expect(task.finished_at).toBe(first?.finished_at)
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[I10] the state of a task or run that has ended never changes, and nothing of an ended run changes at all', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const bench = new Bench()
      const ended = new Map<string, string>()
      bench.fold(events, (event) => {
        for (const [table, rows] of bench.state.hotTables) {
          for (const row of rows.dirty) {
            const run = ended.get(`${row['run_id']}`)
            if (table.name !== 'backfill_chunks') expect(run, `${event.event_type} changed ${table.name} ${name(row)} of a run that was ${run}`).toBeUndefined()
          }
        }
        forgetChanges(bench.state)
        for (const task of allTasks(bench.state)) {
          expect(ended.get(name(task)) ?? task.state).toBe(task.state)
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
    const upstream = taskNamed(state, task.run_id, edge.upstream_task_key)
    if (seen.has(upstream.task_key)) return []
    seen.add(upstream.task_key)
    const attempt = state.hot(taskAttempts).get(upstream.run_id, upstream.task_key, upstream.attempt)
    const endedItself = (upstream.state === 'FAILED' || upstream.state === 'CANCELLED') && attempt?.row_version === upstream.cause_event_id
    return [...(endedItself ? [upstream] : []), ...badAncestors(state, upstream, seen)]
  })
}

const isFlawed = (state: State, task: TaskRow): boolean => (state.hot(runs).get(task.run_id) as RunRow).error !== null

describe('runs', () => {
  test('[I10] the counters of a run are the counts of its tasks, and it is over exactly when they all are', () => {
    const property = fc.property(deliveries(), (delivery) => {
      afterEach(delivery, (state) => {
        for (const run of state.hot(runs).all()) {
          const rows = [...state.hot(tasks).under(run.run_id)]
          const count = (wanted: string): number => rows.filter((task) => task.state === wanted).length
          expect(run).toMatchObject({
            tasks_total: rows.length,
            tasks_succeeded: count('SUCCEEDED'),
            tasks_failed: count('FAILED'),
            tasks_skipped: count('SKIPPED'),
            tasks_cancelled: count('CANCELLED'),
          })
          const isPlanned = run.plan_parts > 0 && run.plan_parts_seen === run.plan_parts
          const isDone = rows.every((task) => isTaskOver(task.state)) && (isPlanned || run.cancel_requested_at !== null)
          expect(isRunOver(run.state), run.run_id).toBe(isDone)
          expect(run.finished_at !== null).toBe(isDone)
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[I10] once its cancellation was requested, a run starts nothing: no retry waits, nothing is ready or blocked', () => {
    const property = fc.property(deliveries(), (delivery) => {
      const attempts = new Map<string, number>()
      afterEach(delivery, (state) => {
        for (const run of state.hot(runs).all()) {
          if (run.cancel_requested_at === null) continue
          const states = new Set([...state.hot(tasks).under(run.run_id)].map((task) => task.state))
          expect(['PLANNED', 'BLOCKED', 'READY', 'RETRY_WAIT'].filter((waiting) => states.has(waiting as TaskRow['state']))).toEqual([])
          const started = [...state.hot(taskAttempts).under(run.run_id)].length
          expect(started, run.run_id).toBe(attempts.get(run.run_id) ?? started)
          attempts.set(run.run_id, started)
        }
      })
    })
    fc.assert(property, effort)
  })

  test('an alarm is set only while somebody waits for it', () => {
    const property = fc.property(deliveries(), (delivery) => {
      afterEach(delivery, (state) => {
        for (const timer of state.hot(timers).all()) {
          if (timer.run_id === null) continue
          expect(isRunOver((state.hot(runs).get(timer.run_id) as RunRow).state), timer.timer_id).toBe(false)
          if (timer.task_key === null) continue
          const task = taskNamed(state, timer.run_id, timer.task_key)
          expect(isTaskOver(task.state), timer.timer_id).toBe(false)
          if (timer.timer_type !== 'SLA_CHECK') expect(timer.attempt, timer.timer_id).toBe(task.attempt)
          if (timer.timer_type === 'RETRY') expect(task.state, timer.timer_id).toBe('RETRY_WAIT')
          if (timer.timer_type === 'HEARTBEAT_CHECK') expect(['DISPATCHED', 'RUNNING'], timer.timer_id).toContain(task.state)
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
        if (run.flawed) continue
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
