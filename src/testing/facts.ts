import { DispatchEnqueued } from '../domain/dispatch/dispatch-enqueued.event.ts'
import { attemptId } from '../domain/dispatch/dispatch-ids.ts'
import { DispatchRequested } from '../domain/dispatch/dispatch-requested.event.ts'
import { MaterializationReported } from '../domain/partitions/materialization-reported.event.ts'
import { PartitionWiped } from '../domain/partitions/partition-wiped.event.ts'
import { requestFingerprint, runIdFromRunKey } from '../domain/runs/run-ids.ts'
import { RunRequested } from '../domain/runs/run-requested.event.ts'
import { ScheduleTicked } from '../domain/schedules/schedule-ticked.event.ts'
import { PlanCreated } from '../domain/tasks/plan-created.event.ts'
import { TaskFinished } from '../domain/tasks/task-finished.event.ts'
import { TaskHeartbeat } from '../domain/tasks/task-heartbeat.event.ts'
import { TaskStarted } from '../domain/tasks/task-started.event.ts'
import { TimerRequested } from '../domain/timers/timer-requested.event.ts'
import { MINUTE_MS, SECOND_MS, toIso } from '../lib/time.ts'
import { type NewEvent, newEvent } from '../model/event.ts'

export interface RunFacts {
  readonly runId: string
  readonly runKey: string
  /** One append each, in the order in which a real run would make them. */
  readonly batches: readonly (readonly NewEvent[])[]
}

export interface RunShape {
  readonly tasks?: number
  readonly outcome?: 'SUCCEEDED' | 'FAILED'
  /** When the request is made; everything else follows a second apart. */
  readonly atMs?: number
}

const START_MS = Date.UTC(2025, 0, 15, 10)
const SECRET = { id: 'secret-1', value: 'not a secret' }

/**
 * A run from its request to its end: a chain of tasks, each dispatched, watched by an alarm, started, alive once and
 * finished. Touches every table that belongs to runs. The name must be new: it is the run key. A run of no tasks is over
 * when it is planned, in one batch.
 */
export function runFacts(name: string, { tasks = 2, outcome = 'SUCCEEDED', atMs = START_MS }: RunShape = {}): RunFacts {
  const runKey = `manual:${name}`
  const runId = runIdFromRunKey('facts', 'facts', runKey, SECRET)
  const keys = Array.from({ length: tasks }, (_, i) => `asset-${i}[${name}]`)
  const batches: NewEvent[][] = [[request(name, runKey, runId), plan(name, runId, keys)]]
  let second = 0
  const next = (): string => toIso(atMs + ++second * SECOND_MS)
  for (const task_key of keys) {
    const attempt = { run_id: runId, task_key, attempt: 1, attempt_id: attemptId(runId, task_key, 1) }
    const { attempt_id: _, ...alarm } = attempt
    const fire_at = toIso(atMs + MINUTE_MS)
    const started_at = next()
    batches.push(
      [
        newEvent(DispatchRequested, { ...attempt, worker_queue: 'default' }),
        newEvent(TimerRequested, { timer_type: 'HEARTBEAT_CHECK', ...alarm, fire_at }),
      ],
      [
        newEvent(DispatchEnqueued, { ...alarm, status: 'CREATED' }),
        newEvent(TaskStarted, { ...attempt, worker_id: 'worker-1', started_at }),
      ],
      [newEvent(TaskHeartbeat, { ...attempt, heartbeat_at: next() })],
      [
        newEvent(TaskFinished, {
          ...attempt,
          outcome,
          retryable: false,
          worker_id: 'worker-1',
          started_at,
          completed_at: next(),
          materialization_id: outcome === 'SUCCEEDED' ? `m-${task_key}` : null,
          metrics: { rows: 42, seconds: 1.5 },
        }),
      ],
    )
    // Below a failure everything is skipped, so there is nothing left to report.
    if (outcome === 'FAILED') break
  }
  return { runId, runKey, batches }
}

function request(name: string, run_key: string, run_id: string): NewEvent {
  const asset_selection = ['asset-0']
  return newEvent(RunRequested, {
    run_key,
    run_id,
    secret_id: SECRET.id,
    request_fingerprint: requestFingerprint({ asset_selection }),
    asset_selection,
    trigger_source_ref: { type: 'manual', user_id: 'ada', request_id: name },
    labels: { team: 'data' },
    priority: 0,
  })
}

function plan(name: string, run_id: string, keys: readonly string[]): NewEvent {
  const tasks = keys.map((task_key, i) => ({
    task_key,
    asset_key: `asset-${i}`,
    partition_key: name,
    partition_values: { name },
    depends_on: keys.slice(Math.max(0, i - 1), i),
    max_attempts: 1,
    heartbeat_timeout_sec: 60,
    priority: 0,
    spec: { retry: 'none' },
  }))
  return newEvent(PlanCreated, { run_id, plan_id: `plan-${name}`, graph_version: 'g1', part: 0, parts: 1, tasks })
}

/** A materialization that was made elsewhere: one cold row, and one key that is remembered for a while. */
export function reportFact(reportId: string, shape: { asset?: string; partition?: string; atMs?: number } = {}): NewEvent {
  return newEvent(MaterializationReported, {
    report_id: reportId,
    asset_key: shape.asset ?? 'raw',
    partition_key: shape.partition ?? reportId,
    materialized_at: toIso(shape.atMs ?? START_MS),
    reported_by: 'ada',
  })
}

/** Records only that a partition was wiped: half a cold row, whose other half is in another file. */
export function wipeFact(requestId: string, shape: { asset?: string; partition?: string } = {}): NewEvent {
  const partition = { asset_key: shape.asset ?? 'raw', partition_key: shape.partition ?? requestId }
  return newEvent(PartitionWiped, { request_id: requestId, ...partition, wiped_by: 'ada' })
}

/** A tick that started nothing: one cold row that retention may drop, and the state of its schedule. */
export function tickFact(scheduleId: string, scheduledForMs: number): NewEvent {
  return newEvent(ScheduleTicked, {
    tick_id: `${scheduleId}:${Math.floor(scheduledForMs / SECOND_MS)}`,
    schedule_id: scheduleId,
    scheduled_for: toIso(scheduledForMs),
    definition_version: 'v1',
    asset_selection: ['asset-0'],
    status: 'skipped',
    reason: 'paused',
  })
}
