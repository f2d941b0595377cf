import { DispatchEnqueued } from '../../domain/dispatch/dispatch-enqueued.event.ts'
import { DispatchRepeated } from '../../domain/dispatch/dispatch-repeated.event.ts'
import { DispatchRequested } from '../../domain/dispatch/dispatch-requested.event.ts'
import { TaskFinished } from '../../domain/tasks/task-finished.event.ts'
import { TaskHeartbeat } from '../../domain/tasks/task-heartbeat.event.ts'
import { TaskSkipped } from '../../domain/tasks/task-skipped.event.ts'
import { TaskStarted } from '../../domain/tasks/task-started.event.ts'
import { TimerFired } from '../../domain/timers/timer-fired.event.ts'
import { TimerRequested } from '../../domain/timers/timer-requested.event.ts'
import { toIso } from '../../lib/time.ts'
import type { AttemptPlan } from './plan.ts'
import { partitionsOf, type SimulatedRun, type SimulatedTask } from './runs.ts'
import { tellWatchers } from './watchers.ts'
import { type Actor, keysFound, pause } from './world.ts'

const uneventful: AttemptPlan = {
  outcome: 'success',
  acknowledged: 0,
  started: 0,
  beats: 0,
  watched: 0,
  zombie: 'none',
  alarms: 0,
}

/** A dispatch that a queue acknowledges goes to remote workers; the others go to local workers of a leader. */
const isRemote = (plan: AttemptPlan): boolean => plan.acknowledged > 0
const workerOf = (plan: AttemptPlan, n: number): string => (isRemote(plan) ? `worker-${n}` : `local:process-${n}`)

/** What happens to one task from the moment it is ready: attempts, one after the other. */
export function* taskLife(run: SimulatedRun, task: SimulatedTask): Actor {
  if (task.plan.deadline)
    yield run.world.write(TimerRequested, { ...deadline(run, task), fire_at: toIso(run.world.now + 600_000) })
  if (task.plan.isInTheWay && task.state === 'READY') {
    run.ended(task, 'SKIPPED')
    yield run.world.write(TaskSkipped, { run_id: run.runId, task_key: task.key, overlap_run_id: 'run_of_another' })
    return
  }
  for (;;) {
    const plan = task.plan.attempts[task.attempt - 1] ?? uneventful
    yield* attemptLife(run, task, plan)
    if (!isWaiting(task)) return
    yield* retry(run, task, plan)
    if (!mayStart(task)) return
  }
}

const isWaiting = (task: SimulatedTask): boolean => task.state === 'RETRY_WAIT'
const mayStart = (task: SimulatedTask): boolean => task.state === 'READY' || task.state === 'DISPATCHED'

const deadline = (run: SimulatedRun, task: SimulatedTask) => ({
  timer_type: 'SLA_CHECK',
  run_id: run.runId,
  task_key: task.key,
})

function* attemptLife(run: SimulatedRun, task: SimulatedTask, plan: AttemptPlan): Actor {
  const { world } = run
  const fact = run.attemptFact(task)
  const { attempt_id: _, ...place } = fact
  // The controller did not see the cancellation yet; its dispatch comes to nothing.
  const late = !mayStart(task)
  if (late && world.roll(2) === 0) return
  if (task.state === 'READY') run.dispatched(task)
  const controller = world.writer()
  const segment = [controller.write(DispatchRequested, { ...fact, ...(isRemote(plan) && { worker_queue: 'gpu' }) })]
  const watch = { timer_type: 'HEARTBEAT_CHECK', ...place }
  let due = toIso(world.now + 60_000)
  if (plan.watched > 0) segment.push(controller.write(TimerRequested, { ...watch, fire_at: due }))
  yield segment
  if (late) return

  if (plan.acknowledged === 2) yield world.write(DispatchEnqueued, { ...place, status: 'FAILED' })
  if (plan.acknowledged > 0) yield world.write(DispatchEnqueued, { ...place, status: 'CREATED' })
  if (plan.acknowledged === 3) {
    // The queue took it and lost it: it is offered again.
    yield world.write(DispatchRepeated, { ...place, offer: 2 })
    yield world.write(DispatchEnqueued, { ...place, status: 'CREATED', offer: 2 })
  }
  const startedAt = toIso(world.now - 50)
  for (let worker = 0; worker < plan.started; worker++) {
    if (task.state === 'DISPATCHED') task.state = 'RUNNING'
    // The queue delivered twice: two workers start, the first one has the attempt.
    yield world.write(TaskStarted, { ...fact, worker_id: workerOf(plan, worker), started_at: startedAt })
  }
  for (let beat = 0; beat < plan.beats; beat++)
    yield world.write(TaskHeartbeat, { ...fact, heartbeat_at: toIso(world.now + (beat % 2) * 5_000) })
  for (let check = 1; check < plan.watched; check++) {
    // The alarm went off while the worker was alive: it is set again, for later.
    yield world.write(TimerFired, { ...watch, fire_at: due })
    due = toIso(world.now + 60_000)
    yield world.write(TimerRequested, { ...watch, fire_at: due })
  }

  yield finish(run, task, plan, startedAt)
  if (plan.zombie !== 'none') world.spawn(zombie(run, task, fact, plan.zombie))
}

function finish(run: SimulatedRun, task: SimulatedTask, plan: AttemptPlan, startedAt: string) {
  const failed = plan.outcome === 'retryable' || plan.outcome === 'fatal'
  const outcome = failed ? 'FAILED' : plan.outcome === 'cancelled' ? 'CANCELLED' : 'SUCCEEDED'
  const fact = run.attemptFact(task)
  // A check that fails with an error fails the attempt; one that warns does not.
  const [ok, severity] = [run.world.roll(3) === 0, failed ? 'error' : 'warn']
  // Some have no version, some the same.
  const version = run.world.roll(3)
  const output = {
    rows: 3,
    checks: [{ name: 'fresh', ok, severity }],
    ...(version > 0 && { data_version: `d${version}` }),
    ...storedBy(run.world.roll(3), fact.attempt_id),
  }
  if (plan.outcome === 'retryable' && task.attempt < task.plan.maxAttempts) {
    if (run.cancelled) run.ended(task, 'CANCELLED')
    else task.state = 'RETRY_WAIT'
  } else {
    run.ended(task, outcome)
  }
  if (task.state !== 'RETRY_WAIT') {
    if (outcome === 'SUCCEEDED') tellOf(run, task, 'materialized')
    if (outcome !== 'CANCELLED' && !ok) tellOf(run, task, 'check_failed')
  }
  return run.world.write(TaskFinished, {
    ...fact,
    outcome,
    completed_at: toIso(run.world.now - 10),
    retryable: plan.outcome === 'retryable',
    // A controller that gives up an attempt does not know its worker.
    ...(plan.started > 0 && plan.zombie === 'none' && { worker_id: workerOf(plan, 0), started_at: startedAt }),
    ...(plan.alarms === 1 && { retry_not_before: toIso(run.world.now + 30_000) }),
    ...(failed && { error_category: plan.zombie === 'none' ? 'user' : 'heartbeat_timeout', error_message: 'it did not work' }),
    ...(outcome === 'SUCCEEDED' && { materialization_id: `m-${fact.attempt_id}`, code_version: 'v1' }),
    output,
    ...keysFound(run.world),
  })
}

/** Some store nothing, some a file, some a small value. */
function storedBy(kind: number, id: string): object {
  const checksum = { bytes: 1 + kind, sha256: 'ab'.repeat(32) }
  if (kind === 0) return {}
  return kind === 1 ? { path: `data/a/_/m-${id}.json`, ...checksum } : { value: JSON.stringify(id), ...checksum }
}

/** Tells watchers what became of each partition of the task. */
function tellOf(run: SimulatedRun, task: SimulatedTask, what: 'materialized' | 'check_failed'): void {
  if (task.asset === null) return
  const id = `${what}:${run.runId}:${task.key}:${task.attempt}`
  const partitions = partitionsOf(task)
  const news = { type: 'asset', what, assets: [task.asset], asker: run.asker } as const
  for (const one of partitions.length > 1 ? partitions.map((partition) => `${id}:${partition}`) : [id])
    tellWatchers(run.world.watchers, { id: one, ...news })
}

/** A worker that was given up comes back and reports another end of the attempt. */
function* zombie(
  run: SimulatedRun,
  task: SimulatedTask,
  fact: ReturnType<SimulatedRun['attemptFact']>,
  outcome: 'success' | 'failure',
): Actor {
  const { world } = run
  yield* pause(world.roll(4))
  yield world.write(TaskHeartbeat, { ...fact, heartbeat_at: toIso(world.now) })
  yield world.write(TaskFinished, {
    ...fact,
    outcome: outcome === 'success' ? 'SUCCEEDED' : 'FAILED',
    retryable: task.plan.maxAttempts > 1,
    completed_at: toIso(world.now),
    worker_id: 'zombie',
    materialization_id: outcome === 'success' ? 'too-late' : null,
    ...keysFound(world),
  })
}

/** The wait between two attempts. */
function* retry(run: SimulatedRun, task: SimulatedTask, plan: AttemptPlan): Actor {
  const { world } = run
  const { attempt_id: _, ...place } = run.attemptFact(task)
  const timer = { timer_type: 'RETRY', ...place, fire_at: toIso(world.now + 30_000) }
  yield world.write(TimerRequested, timer)
  if (task.state === 'RETRY_WAIT') {
    task.attempt += 1
    run.makeReady(task)
  }
  yield world.write(TimerFired, timer)
  // Two sweepers found the same overdue retry, and each set its own alarm.
  if (plan.alarms === 2) yield world.write(TimerFired, { ...timer, fire_at: toIso(world.now + 31_000) })
}
