import { isPathOf } from '../../../contract/output-path.ts'
import { storedValues } from '../../../domain/partitions/stored-values.table.ts'
import {
  DataRemoved,
  MAX_REMOVED,
  type RemovalReason,
  type RemovedValue,
} from '../../../domain/retention/data-removed.event.ts'
import { FilesDeleted } from '../../../domain/retention/files-deleted.event.ts'
import { pendingRemovals } from '../../../domain/retention/pending-removals.table.ts'
import { type ValueVersionRow, valueVersions } from '../../../domain/retention/value-versions.table.ts'
import { Paths, type Scope } from '../../../engine/paths.ts'
import { toIso } from '../../../lib/time.ts'
import { type NewEvent, newEvent } from '../../../model/event.ts'
import type { ObjectStore } from '../../../ports/object-store.ts'
import type { KnownRows } from '../known-rows.ts'

/** What is needed to remove values: the rows, the store of the files, and the way to put it on record. */
export interface Remover extends KnownRows {
  readonly scope: Scope
  readonly store: ObjectStore
  mintId(): string
  submit(events: readonly NewEvent[]): Promise<unknown>
}

export interface Removal {
  readonly values: readonly ValueVersionRow[]
  readonly reason: RemovalReason
  readonly by: string
  readonly note?: string | undefined
  /** What is put on record with it. */
  readonly with?: readonly NewEvent[]
}

/** Partitions that the values of one event may be of, all together. A million bytes are the limit of an event. */
const MAX_KEYS = 5_000

/**
 * Removes values in two steps: first it is on record that they are no longer kept, then their files are deleted. If the process ends in
 * between, the record says which files are left, and the next pass deletes them.
 */
export async function removeValues(remover: Remover, removal: Removal): Promise<void> {
  const events = await removalEvents(remover, removal)
  const all = [...events, ...(removal.with ?? [])]
  if (all.length === 0) return
  await remover.submit(all)
  if (events.length > 0) await deletePending(remover)
}

/** Deletes the files of values that were removed: of this removal, and of earlier ones that were interrupted. */
export async function deletePending(remover: Pick<Remover, 'rows' | 'scope' | 'store' | 'submit'>): Promise<void> {
  const { root } = new Paths(remover.scope)
  for (const { removal_id, paths } of [...remover.rows().hot(pendingRemovals).all()]) {
    // Nothing is wrong with deleting a file twice: no other value ever gets its name.
    for (const path of paths) await remover.store.delete(`${root}${path}`)
    await remover.submit([newEvent(FilesDeleted, { removal_id })])
  }
}

async function removalEvents(remover: Remover, { values, reason, by, note }: Removal): Promise<NewEvent[]> {
  const events: NewEvent[] = []
  // An asset that was renamed has values under each of its names.
  for (const [asset_key, rows] of Map.groupBy(values, (row) => row.asset_key)) {
    for (const part of inParts(await removedValues(remover, rows, reason))) {
      const removal_id = remover.mintId()
      const removal = { removal_id, asset_key, reason, removed_by: by, ...(note !== undefined && { note }), values: part }
      events.push(newEvent(DataRemoved, removal, { actor: by }))
    }
  }
  return events
}

function* inParts(values: readonly RemovedValue[]): Generator<RemovedValue[]> {
  let part: RemovedValue[] = []
  let keys = 0
  for (const value of values) {
    if (part.length === MAX_REMOVED || (part.length > 0 && keys + value.partition_keys.length > MAX_KEYS)) {
      yield part
      part = []
      keys = 0
    }
    part.push(value)
    keys += value.partition_keys.length
  }
  if (part.length > 0) yield part
}

/** One for each event: a value that was made for several partitions has one file. */
async function removedValues(
  known: KnownRows,
  rows: readonly ValueVersionRow[],
  reason: RemovalReason,
): Promise<RemovedValue[]> {
  const removed: RemovedValue[] = []
  for (const row of new Map(rows.map((each) => [each.event_id, each])).values()) {
    const { asset_key, event_id, materialization_id, materialized_at, path, bytes } = row
    const partition_keys = await partitionsOf(known, row)
    // What is pushed out is no longer in stored_values; only a purge removes what a partition had last.
    const stored = reason === 'purged' ? await storedBy(known, asset_key, partition_keys, event_id) : undefined
    const isOwn = path !== null && isPathOf(path, asset_key, materialization_id ?? '')
    removed.push({
      event_id,
      partition_keys,
      materialization_id,
      materialized_at: toIso(materialized_at ?? 0),
      // A ledger may hold paths that were never checked. Nothing but a value of the asset is ever deleted.
      path: isOwn ? path : null,
      bytes,
      ...(stored !== undefined && { sha256: stored.sha256 }),
      ...(stored?.materialized_order != null && { materialized_order: stored.materialized_order }),
    })
  }
  return removed
}

async function partitionsOf(known: KnownRows, { asset_key, event_id, partition_key, partitions }: ValueVersionRow) {
  if ((partitions ?? 1) === 1) return [partition_key]
  const rows = await known.coldRows(valueVersions).after([asset_key, event_id, ''], partitions ?? 1)
  return rows.filter((row) => row.event_id === event_id).map((row) => row.partition_key)
}

async function storedBy(known: KnownRows, asset: string, partitions: readonly string[], event: string) {
  const rows = await known.coldRows(storedValues).lookup(partitions.map((key) => [asset, key]))
  return rows.find((row) => row?.event_id === event)
}
