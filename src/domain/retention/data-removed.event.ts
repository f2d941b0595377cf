import { z } from 'zod'
import { isOutputPath } from '../../contract/output-path.ts'
import { isObject } from '../../lib/is-object.ts'
import { toMs } from '../../lib/time.ts'
import { id, partitionKey, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { storedValues } from '../partitions/stored-values.table.ts'
import { removalSubject } from '../subjects.ts'
import { pendingRemovals } from './pending-removals.table.ts'
import { valueVersions } from './value-versions.table.ts'

/** Values of one event. With it the event has at most some hundred kilobytes. */
export const MAX_REMOVED = 500

export const removalReasons = ['expired', 'purged'] as const
export type RemovalReason = (typeof removalReasons)[number]

const removedValue = z.object({
  /** The event that reported the value. */
  event_id: id,
  partition_keys: z.array(partitionKey).min(1).max(100_000),
  materialization_id: id.nullish(),
  materialized_at: timestamp,
  /** As stored_values has it. */
  materialized_order: z.number().int().nullish(),
  /** Null for a value that was recorded with its event. */
  path: z.string().max(1_024).nullish(),
  bytes: z.number().int().min(0).nullish(),
  /** Of a value that stored_values still has: its row there loses the value. */
  sha256: z.string().max(128).nullish(),
})
export type RemovedValue = z.infer<typeof removedValue>

export const DataRemoved = defineEvent({
  type: 'DataRemoved',
  version: 1,
  doc: 'Stored values are no longer kept. Their files are deleted once this is on record; what was made of them stays.',
  payload: z.object({
    removal_id: id,
    asset_key: id,
    reason: z.enum(removalReasons),
    removed_by: id,
    /** What the user said about it. */
    note: z.string().max(4_096).nullish(),
    values: z.array(removedValue).min(1).max(MAX_REMOVED),
  }),
  idempotencyKey: (removal) => `data_removed:${removal.removal_id}`,
  dedup: 'key',
  removes: ({ values }) => (Array.isArray(values) ? values.flatMap(pathOf) : []),
  fold({ event, at, payload: { removal_id, asset_key, reason, removed_by, values }, rows, wake }) {
    const removal = { removed_at: at, removed_reason: reason }
    for (const value of values) {
      for (const partition_key of value.partition_keys) {
        const { event_id } = value
        const by = { removed_event_id: event.event_id, removed_by, row_version: event.event_id }
        rows.cold(valueVersions).merge({ asset_key, event_id, partition_key, ...removal, ...by })
        forget(rows, { asset_key, partition_key }, value, { ...removal, row_version: event.event_id })
      }
    }
    const paths = values.flatMap(({ path }) => (path != null && isOutputPath(path) ? [path] : []))
    if (paths.length > 0) {
      rows.hot(pendingRemovals).insert({ removal_id, asset_key, paths, row_version: event.event_id })
      wake(removalSubject(removal_id))
    }
    return applied
  },
})

/** The row of the same materialization, without the value. A later materialization of the partition wins over it. */
function forget(
  rows: Rows,
  place: { asset_key: string; partition_key: string },
  { event_id, materialization_id, materialized_at, materialized_order, path, bytes, sha256 }: RemovedValue,
  removal: { removed_at: number; removed_reason: RemovalReason; row_version: string },
): void {
  if (sha256 == null) return
  const made = { materialized_at: toMs(materialized_at), materialized_order: materialized_order ?? null }
  const stored = { event_id, ...made, materialization_id: materialization_id ?? '' }
  rows
    .cold(storedValues)
    .merge({ ...place, ...stored, path: path ?? null, value: null, bytes: bytes ?? null, sha256, ...removal })
}

function pathOf(value: unknown): string[] {
  const { path } = isObject(value) ? value : {}
  return typeof path === 'string' && isOutputPath(path) ? [path] : []
}
