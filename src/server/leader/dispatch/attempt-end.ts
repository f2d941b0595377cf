import type { AttemptResultInput } from '../../../contract/dispatch.ts'
import { boundedDetail, cutMiddle, MAX_MESSAGE } from '../../../contract/error-detail.ts'
import { isOutputPath, isOwnPath, outputFolder } from '../../../contract/output-path.ts'
import type { ReportedKeys } from '../../../contract/partition-keys.ts'
import { checksumOf, MAX_INLINE_BYTES, withoutValue } from '../../../contract/stored-output.ts'
import { turnOfReported } from '../../../domain/partitions/dynamic-keys.ts'
import type { taskAttempts } from '../../../domain/tasks/task-attempts.table.ts'
import { TaskFinished } from '../../../domain/tasks/task-finished.event.ts'
import type { TaskRow } from '../../../domain/tasks/tasks.table.ts'
import { isServoError, messageOf, ServoError } from '../../../lib/error.ts'
import { canonicalJson } from '../../../lib/json.ts'
import { toIso } from '../../../lib/time.ts'
import { type EventContext, type NewEvent, newEvent } from '../../../model/event.ts'
import type { Rows } from '../../../model/rows.ts'
import type { Row } from '../../../model/table.ts'
import type { AttemptRef } from '../logs.ts'
import { placeOf } from './inputs.ts'

export interface AttemptEnd {
  /** The task of the attempt, if it is still known: the attempt may only report what it made itself. */
  readonly task: Readonly<Pick<TaskRow, 'asset_key' | 'task_key' | 'partition_key'>> | undefined
  readonly workerId: string | null
  readonly startedAt: number | null
  readonly now: number
  readonly rows: Rows
  /** The run and the trace that the event belongs to. */
  readonly context: EventContext
}

/** The event for the end of an attempt, from its worker's report. Refuses a path that the attempt cannot have written, and a value that is none. */
export function taskFinished(
  ref: AttemptRef,
  result: AttemptResultInput,
  { task, workerId, startedAt, now, rows, context }: AttemptEnd,
): NewEvent {
  const { run_id, task_key, attempt, attempt_id } = ref
  checkPath(result, task)
  checkValue(result)
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
      error_message: error ? cutMiddle(error.message, MAX_MESSAGE) : null,
      error_detail: error ? boundedDetail(error) : null,
      retryable: error?.retryable ?? true,
      retry_not_before: error?.retry_after_ms == null ? null : toIso(now + error.retry_after_ms),
      materialization_id: result.materialization_id ?? null,
      code_version: result.code_version ?? null,
      output: result.output ?? null,
      metrics: result.metrics ?? null,
      ...(result.outcome === 'SUCCEEDED' && { ...keysOf(result), ...turnOfReported(rows, result, now) }),
    },
    context,
  )
}

/** Downstream tasks open the file at this path: a path that leads elsewhere would show them the data of another asset. */
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
      hint: `Write to the output_folder of the dispatch, under the name materialization_id, dot, ending, such as ${where}${id || '7c2e'}.parquet.`,
      facts: { field: 'output.path' },
    },
  )
}

/** Downstream tasks and SQL get the value as it is reported. */
function checkValue({ output }: AttemptResultInput): void {
  const text = output?.value
  if (text === null || text === undefined) return
  const bytes = new TextEncoder().encode(text)
  if (output?.path) throw badValue('stands beside output.path', 'Report a file or a value, not both.')
  if (bytes.byteLength > MAX_INLINE_BYTES)
    throw badValue(
      `has ${bytes.byteLength} bytes`,
      `Write a value of more than ${MAX_INLINE_BYTES} bytes to a file in output_folder.`,
    )
  if (!isJson(text)) throw badValue('is not JSON', 'Report the value as JSON text, such as "[1,2]".')
  const checksum = checksumOf(bytes)
  if (output?.bytes !== checksum.bytes || output?.sha256 !== checksum.sha256)
    throw badValue(
      'does not agree with output.bytes and output.sha256',
      'Report the number of bytes and the SHA-256 of the text in UTF-8.',
    )
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const badValue = (what: string, hint: string): ServoError =>
  new ServoError('invalid', 'bad_output_value', `output.value ${what}`, { hint, facts: { field: 'output.value' } })

/** Most attempts change no keys, and then their events have no such fields. */
function keysOf({ partition_keys_added: added, partition_keys_removed: removed }: ReportedKeys): ReportedKeys {
  return { ...(added && { partition_keys_added: added }), ...(removed && { partition_keys_removed: removed }) }
}

/** The result of an attempt that never reached a worker. A missing input stays missing; storage that could not be reached may come back. */
export function notBegun(error: unknown): AttemptResultInput {
  const missing = isServoError(error, 'not_found') || isServoError(error, 'invalid')
  const category = missing ? 'invalid' : 'infrastructure'
  return { outcome: 'FAILED', error: { category, message: toldBy(error), retryable: !missing } }
}

/** The result of an attempt whose report no event can hold. It would be the same the next time, so it is not retried. */
export function notRecorded(error: unknown, assetKey: string, reported: AttemptResultInput): AttemptResultInput {
  const isLarge = isServoError(error, 'invalid') && error.code === 'too_large'
  const message = isLarge ? tooMuch(assetKey, reported) : `What ${assetKey} reported cannot be recorded.\n${toldBy(error)}`
  return { outcome: 'FAILED', error: { category: 'invalid', message, retryable: false } }
}

/** Names what takes the most room: everything else that an attempt reports is a few lines. */
function tooMuch(assetKey: string, { output, partition_keys_added, partition_keys_removed }: AttemptResultInput): string {
  const parts = [
    [
      'metadata',
      output?.metadata,
      'Keep facts and links in metadata, and store the data itself: return it, or write it to a file.',
    ],
    ['check results', output?.checks, 'Report counts and a few examples in checks, and store the rest as an asset of its own.'],
    ['partition keys', [partition_keys_added, partition_keys_removed], 'Add or remove fewer keys at a time.'],
  ] as const
  const sized = parts.map(([what, value, hint]) => ({ what, hint, bytes: Buffer.byteLength(JSON.stringify(value ?? null)) }))
  const { what, hint, bytes } = sized.reduce((most, each) => (each.bytes > most.bytes ? each : most))
  const size = (bytes / 2 ** 20).toFixed(1)
  return `${assetKey} reported ${size} MiB of ${what}; everything that an attempt reports may have 1 MiB together. ${hint}`
}

const toldBy = (error: unknown): string =>
  [messageOf(error), isServoError(error) ? error.hint : undefined].filter(Boolean).join('\n')

const REPORTED = [
  'outcome',
  'error_category',
  'error_message',
  'error_detail',
  'materialization_id',
  'code_version',
  'output',
  'metrics',
] as const

/** The columns of an attempt that its worker reported. */
export type RecordedEnd = Readonly<Pick<Row<typeof taskAttempts>, (typeof REPORTED)[number]>>

/** True if this result is on record already: then the worker only missed our answer. */
export function isSameResult(recorded: RecordedEnd, result: AttemptResultInput): boolean {
  const { error } = result
  const said: RecordedEnd = {
    outcome: result.outcome,
    error_category: error?.category ?? null,
    error_message: error ? cutMiddle(error.message, MAX_MESSAGE) : null,
    error_detail: error ? boundedDetail(error) : null,
    materialization_id: result.materialization_id ?? null,
    code_version: result.code_version ?? null,
    output: withoutValue(result.output) ?? null,
    metrics: result.metrics ?? null,
  }
  return REPORTED.every((name) => canonicalJson(recorded[name] ?? null) === canonicalJson(said[name]))
}
