import { z } from 'zod'
import { errorDetail } from '../../contract/error-schema.ts'
import { isOutputPath } from '../../contract/output-path.ts'
import { keysClockTurn, recordedKeys } from '../../contract/partition-keys.ts'
import { checksumOf, storedIn, withoutValue } from '../../contract/stored-output.ts'
import { isObject } from '../../lib/is-object.ts'
import { toMs } from '../../lib/time.ts'
import { id, timestamp } from '../../model/envelope.ts'
import { applied, type CarriedValue, defineEvent, isVerdict, type StoredFile } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { dispatchOutbox } from '../dispatch/dispatch-outbox.table.ts'
import { applyReportedKeys } from '../partitions/dynamic-keys.ts'
import { orderOf } from '../partitions/order.ts'
import { recordAttempt } from '../partitions/record.ts'
import { keepForRun } from '../runs/keep-values.ts'
import { countTaskEnd, endRunIfDone, touchRun } from '../runs/run-progress.ts'
import { noteTaskEnd } from '../sensors/happenings/happenings.ts'
import { runSubject, taskSubject } from '../subjects.ts'
import { clearTaskTimers, timerSlot, timers } from '../timers/timers.table.ts'
import { editKnown } from '../typed-rows.ts'
import { attemptInFlight } from './attempt-phase.ts'
import { endDownstream, satisfyDownstream } from './propagate.ts'
import { outcomes, taskAttempts } from './task-attempts.table.ts'
import { LOST, tasks } from './tasks.table.ts'

const payload = z.object({
  run_id: id,
  task_key: id,
  attempt: z.number().int().min(1),
  attempt_id: id,
  outcome: z.enum(outcomes),
  /** Repeats the start from TaskStarted, so that this event alone describes the whole attempt. */
  worker_id: id.nullish(),
  started_at: timestamp.nullish(),
  completed_at: timestamp,
  error_category: id.nullish(),
  error_message: z.string().max(65_536).nullish(),
  /** Type, code, stack and causes of the error. */
  error_detail: errorDetail.nullish(),
  retryable: z.boolean().default(true),
  retry_not_before: timestamp.nullish(),
  materialization_id: id.nullish(),
  code_version: id.nullish(),
  /** With `path` or `value`, `bytes` and `sha256` of the stored value. */
  output: z.unknown().nullish(),
  metrics: z.unknown().nullish(),
  ...recordedKeys,
  keys_clock_turn: keysClockTurn,
})
type Finish = z.infer<typeof payload>

/** Losing a worker costs a task none of its attempts, unless it happens so often that the task may be the reason. */
const MAX_LOST = 20

export const TaskFinished = defineEvent({
  type: 'TaskFinished',
  version: 1,
  doc: 'An attempt ended: its worker reported it, or a controller gave it up.',
  payload,
  idempotencyKey: (finish) => `finished:${finish.run_id}:${finish.task_key}:${finish.attempt}`,
  dedup: 'structure',
  about: (finish) => ({ owner: 'runs', id: finish.run_id }),
  stores: ({ output }) => storedFile(output),
  carries: (recorded) => carriedValue(recorded),
  ordered: [
    {
      // Ordered against everything: whether a failure came first depends also on the facts that it waits for.
      with: ['*'],
      when: (mine, other) => mine.run_id === other.run_id && mine.outcome === 'CANCELLED',
      why: 'Tasks downstream of a failure are skipped, tasks downstream of a cancellation are cancelled; a task downstream of both follows the first.',
    },
  ],
  fold({ event, at: receivedAt, payload: finish, rows, wake }) {
    const inFlight = attemptInFlight(rows, finish)
    if (isVerdict(inFlight)) return inFlight
    const at = toMs(finish.completed_at)
    const run = touchRun(rows, finish.run_id, event.event_id)
    const task = editKnown(rows.hot(tasks), finish.run_id, finish.task_key)
    closeAttempt(rows, finish, at, event.event_id)
    recordAttempt(rows, task, finish, { at, order: orderOf(event, receivedAt, at), eventId: event.event_id })
    if (finish.outcome === 'SUCCEEDED') {
      // Changes of keys are compared by when we received them, whatever the source.
      const changed_by = taskSubject(finish.run_id, finish.task_key)
      const clock_turn = finish.keys_clock_turn ?? null
      applyReportedKeys(rows, finish, { at: receivedAt, event_id: event.event_id, changed_by, clock_turn })
    }

    task.last_heartbeat_at = null
    task.error_message = finish.error_message ?? null
    task.materialization_id = finish.materialization_id ?? null
    task.row_version = event.event_id
    if (finish.error_category === LOST) task.lost_attempts = (task.lost_attempts ?? 0) + 1
    const counted = task.attempt - Math.min(task.lost_attempts ?? 0, MAX_LOST)
    const mayRetry = finish.outcome === 'FAILED' && finish.retryable && counted < task.max_attempts
    if (mayRetry && run.cancel_requested_at === null) {
      task.state = 'RETRY_WAIT'
      task.retry_not_before = finish.retry_not_before ? toMs(finish.retry_not_before) : null
    } else {
      // A retry never starts for a cancelled run, so the attempt that failed meanwhile was cancelled with it.
      task.state = mayRetry ? 'CANCELLED' : finish.outcome
      task.retry_not_before = null
      task.finished_at = at
      task.cause_event_id = event.event_id
      clearTaskTimers(rows, task)
      countTaskEnd(run, task.state)
      if (task.state === 'SUCCEEDED') {
        keepForRun(rows, task, finish.output, event.event_id)
        satisfyDownstream(rows, task, at, event.event_id, wake)
      } else endDownstream(rows, run, task, wake)
      noteTaskEnd(rows, run, task, { ...finish, at, eventId: event.event_id })
      endRunIfDone(rows, run, at, wake)
    }
    wake(taskSubject(finish.run_id, finish.task_key))
    return applied
  },
})

/** The file in which an attempt left its value. */
function storedFile(output: unknown): StoredFile | undefined {
  if (!isObject(output)) return undefined
  const { path, bytes, sha256 } = output
  if (typeof path !== 'string' || !isOutputPath(path)) return undefined
  return {
    path,
    ...(typeof bytes === 'number' && { bytes }),
    ...(typeof sha256 === 'string' && { sha256 }),
  }
}

/** The value that an attempt reported with its end. */
function carriedValue(recorded: Readonly<Record<string, unknown>>): CarriedValue | undefined {
  const { output } = recorded
  const { value } = storedIn(output) ?? {}
  if (value === undefined || value === null) return undefined
  const checksum = checksumOf(Buffer.from(value))
  return { ...checksum, without: { ...recorded, output: { ...checksum, ...Object(withoutValue(output)) } } }
}

function closeAttempt(rows: Rows, finish: Finish, at: number, eventId: string): void {
  const attempt = rows.hot(taskAttempts).edit(finish.run_id, finish.task_key, finish.attempt)
  if (attempt !== undefined) {
    attempt.state = finish.outcome
    attempt.outcome = finish.outcome
    attempt.worker_id = finish.worker_id ?? null
    attempt.started_at = finish.started_at ? toMs(finish.started_at) : null
    attempt.last_heartbeat_at = null
    attempt.finished_at = at
    attempt.error_category = finish.error_category ?? null
    attempt.error_message = finish.error_message ?? null
    attempt.error_detail = finish.error_detail ?? null
    attempt.retryable = finish.outcome === 'FAILED' ? finish.retryable : null
    attempt.materialization_id = finish.materialization_id ?? null
    // The value itself is in stored_values while it is current: sealed history could not forget it.
    attempt.output = withoutValue(finish.output) ?? null
    attempt.metrics = finish.metrics ?? null
    attempt.code_version = finish.code_version ?? null
    attempt.row_version = eventId
  }
  // Assigned, not advanced: the row is the same whether or not the worker's start was seen before its end.
  const dispatch = rows.hot(dispatchOutbox).edit(finish.run_id, finish.task_key, finish.attempt)
  if (dispatch !== undefined) {
    dispatch.status = 'ACKED'
    dispatch.offer = null
    dispatch.row_version = eventId
  }
  // The alarm that watched this attempt has nothing left to watch.
  const watching = timerSlot({ task_key: finish.task_key, attempt: finish.attempt, timer_type: 'HEARTBEAT_CHECK' })
  rows.hot(timers).remove(runSubject(finish.run_id), watching)
}
