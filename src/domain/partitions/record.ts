import { recordedIn, storedIn } from '../../contract/stored-output.ts'
import { isObject } from '../../lib/is-object.ts'
import type { Rows } from '../../model/rows.ts'
import { readKey } from '../../partitions/key.ts'
import { valueVersions } from '../retention/value-versions.table.ts'
import { type TaskOutcome, taskAttempts } from '../tasks/task-attempts.table.ts'
import type { TaskRow } from '../tasks/tasks.table.ts'
import { dataVersions } from './data-versions.table.ts'
import { partitionStatus } from './partition-status.table.ts'
import { storedValues } from './stored-values.table.ts'

export interface RecordedAttempt {
  readonly outcome: TaskOutcome
  /** Which attempt of the task. */
  readonly attempt: number
  readonly materialization_id?: string | null | undefined
  readonly code_version?: string | null | undefined
  readonly output?: unknown
}

/** When the attempt ended, and the event that says so. */
interface Recorded {
  readonly at: number
  /** In the order of the record; null if `at` says it. */
  readonly order: number | null
  readonly eventId: string
}

/**
 * Notes an attempt at a partition, or at every one of a range, and its materialization if it succeeded. A failure leaves the
 * last success alone.
 */
export function recordAttempt(
  rows: Rows,
  task: Readonly<TaskRow>,
  ended: RecordedAttempt,
  { at, order, eventId }: Recorded,
): void {
  if (task.asset_key === null) return
  const succeeded = ended.outcome === 'SUCCEEDED'
  const dataVersion = versionIn(ended.output)
  // Its inputs were looked up after the dispatch, so it may not have seen anything recorded later.
  const attempt = succeeded ? rows.hot(taskAttempts).get(task.run_id, task.task_key, ended.attempt) : undefined
  const noted = {
    asset_key: task.asset_key,
    last_attempt_run_id: task.run_id,
    last_attempt_at: at,
    last_attempt_order: order,
    last_attempt_outcome: ended.outcome,
    last_attempt_event_id: eventId,
    ...(succeeded && {
      last_materialization_run_id: task.run_id,
      last_materialization_id: ended.materialization_id ?? null,
      last_materialization_path: pathIn(ended.output),
      last_materialization_at: at,
      last_materialization_order: order,
      last_materialization_code_version: ended.code_version ?? null,
      last_materialization_data_version: dataVersion,
      last_materialization_inputs_at: attempt?.dispatched_at ?? at,
      last_materialization_inputs_order: attempt === undefined ? order : attempt.dispatched_order,
      last_materialization_event_id: eventId,
    }),
    row_version: eventId,
  }
  const { asset_key, partition_keys, partition_values } = task
  const stored = recordedIn(ended.output)
  const version = stored && {
    asset_key,
    event_id: eventId,
    materialized_at: at,
    materialization_id: ended.materialization_id ?? null,
    outcome: ended.outcome,
    path: stored.path,
    bytes: stored.bytes,
    partitions: partition_keys?.length ?? 1,
    row_version: eventId,
  }
  const record = (key: string, values: TaskRow['partition_values']): void => {
    rows.cold(partitionStatus).merge({ ...noted, partition_key: key, partition_values: values })
    if (version) rows.cold(valueVersions).merge({ ...version, partition_key: key })
    if (!succeeded) return
    const made = {
      event_id: eventId,
      materialized_at: at,
      materialized_order: order,
      data_version: dataVersion,
      row_version: eventId,
    }
    rows.cold(dataVersions).merge({ asset_key, partition_key: key, ...made })
    // Earlier versions reported no checksum. What they published must follow from their events still.
    if (!stored?.sha256 || !ended.materialization_id) return
    const { path, value, bytes, sha256 } = stored
    const reported = { event_id: eventId, materialized_at: at, materialized_order: order, row_version: eventId }
    const about = { path, value, bytes, sha256, materialization_id: ended.materialization_id }
    rows.cold(storedValues).merge({ asset_key, partition_key: key, ...reported, ...about })
  }
  // With several dimensions, the values that a range has in common do not name one partition.
  if (partition_keys) for (const key of partition_keys) record(key, partition_values && readKey(key))
  else record(task.partition_key ?? '', partition_values)
}

const pathIn = (output: unknown): string | null => storedIn(output)?.path ?? null

function versionIn(output: unknown): string | null {
  const { data_version: text } = isObject(output) && !Array.isArray(output) ? output : {}
  return typeof text === 'string' && text !== '' ? text : null
}
