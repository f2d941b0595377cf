import type { AttemptResultInput } from '../../../contract/dispatch.ts'
import { isOutputPath, isOwnPath, outputFolder } from '../../../contract/output-path.ts'
import type { ReportedKeys } from '../../../contract/partition-keys.ts'
import type { taskAttempts } from '../../../domain/tasks/task-attempts.table.ts'
import { TaskFinished } from '../../../domain/tasks/task-finished.event.ts'
import type { TaskRow } from '../../../domain/tasks/tasks.table.ts'
import { isServoError, messageOf, ServoError } from '../../../lib/error.ts'
import { canonicalJson } from '../../../lib/json.ts'
import { toIso } from '../../../lib/time.ts'
import { type EventContext, type NewEvent, newEvent } from '../../../model/event.ts'
import type { Row } from '../../../model/table.ts'
import type { AttemptRef } from '../logs.ts'
import { placeOf } from './inputs.ts'

export interface AttemptEnd {
  /** Which task it was an attempt at, if that is still known: it may only tell of what it made itself. */
  readonly task: Readonly<Pick<TaskRow, 'asset_key' | 'task_key' | 'partition_key'>> | undefined
  readonly workerId: string | null
  readonly startedAt: number | null
  readonly now: number
  /** Where the fact belongs. */
  readonly context: EventContext
}

const MAX_MESSAGE = 16_384

/** What a worker reports of an attempt, as the fact that it ended. Refuses what it cannot have made. */
export function taskFinished(
  of: AttemptRef,
  result: AttemptResultInput,
  { task, workerId, startedAt, now, context }: AttemptEnd,
): NewEvent {
  const { run_id, task_key, attempt, attempt_id } = of
  checkPath(result, task)
  const { error } = result
  return newEvent(
    TaskFinished,
    {
      run_id,
      task_key,
      attempt,
      attempt_id,
      outcome: result.outcome,
      worker_id: workerId,
      started_at: startedAt === null ? null : toIso(startedAt),
      completed_at: toIso(now),
      error_category: error?.category ?? null,
      error_message: error?.message.slice(0, MAX_MESSAGE) ?? null,
      retryable: error?.retryable ?? true,
      retry_not_before: error?.retry_after_ms == null ? null : toIso(now + error.retry_after_ms),
      materialization_id: result.materialization_id ?? null,
      code_version: result.code_version ?? null,
      output: result.output ?? null,
      metrics: result.metrics ?? null,
      ...(result.outcome === 'SUCCEEDED' && keysOf(result)),
    },
    context,
  )
}

/** A task that is made from this asset opens what lies there: a path that leads elsewhere would show it another asset's data. */
function checkPath({ output, materialization_id: id }: AttemptResultInput, task: AttemptEnd['task']): void {
  const path = output?.path
  if (path === null || path === undefined) return
  const place = task && placeOf(task)
  if (place === undefined ? isOutputPath(path) : isOwnPath(path, { ...place, materializationId: id })) return
  const where = place === undefined ? 'data/' : outputFolder(place.assetKey, place.partitionKey)
  throw new ServoError(
    'invalid',
    'bad_output_path',
    `output.path ${JSON.stringify(path.slice(0, 200))} is not below ${where}`,
    {
      hint: `Write to the output_folder of the dispatch, under a name of the materialization_id, a dot and an ending, such as ${where}${id || '7c2e'}.parquet.`,
      facts: { field: 'output.path' },
    },
  )
}

/** Most attempts bring none, and then their ends do not speak of keys. */
function keysOf({ partition_keys_added: added, partition_keys_removed: removed }: ReportedKeys): ReportedKeys {
  return { ...(added && { partition_keys_added: added }), ...(removed && { partition_keys_removed: removed }) }
}

/** Why an attempt never reached a worker. What is missing stays missing; what could not be reached may come back. */
export function notBegun(error: unknown): AttemptResultInput {
  const missing = isServoError(error, 'not_found') || isServoError(error, 'invalid')
  const category = missing ? 'invalid' : 'infrastructure'
  return { outcome: 'FAILED', error: { category, message: toldBy(error), retryable: !missing } }
}

/** What came of an attempt that reported what no fact can hold: it would be the same the next time. */
export function notRecorded(error: unknown): AttemptResultInput {
  const message = `What the attempt reported cannot be recorded.\n${toldBy(error)}`
  return { outcome: 'FAILED', error: { category: 'invalid', message, retryable: false } }
}

const toldBy = (error: unknown): string =>
  [messageOf(error), isServoError(error) ? error.hint : undefined].filter(Boolean).join('\n')

const REPORTED = [
  'outcome',
  'error_category',
  'error_message',
  'materialization_id',
  'code_version',
  'output',
  'metrics',
] as const

/** What of an attempt's row its worker reported. */
export type RecordedEnd = Readonly<Pick<Row<typeof taskAttempts>, (typeof REPORTED)[number]>>

/** True if this is the end that is on record: then its worker only never heard that we know. */
export function isSameResult(recorded: RecordedEnd, result: AttemptResultInput): boolean {
  const { error } = result
  const said: RecordedEnd = {
    outcome: result.outcome,
    error_category: error?.category ?? null,
    error_message: error?.message.slice(0, MAX_MESSAGE) ?? null,
    materialization_id: result.materialization_id ?? null,
    code_version: result.code_version ?? null,
    output: result.output ?? null,
    metrics: result.metrics ?? null,
  }
  return REPORTED.every((name) => canonicalJson(recorded[name] ?? null) === canonicalJson(said[name]))
}
