import type { AnyRow, Table } from '../../model/table.ts'
import type { FileRef, SortedFileRef } from '../files/file-ref.ts'
import { type Consumed, durableSegments } from '../ledger/consumed.ts'
import type { Delta, DeltaFiles, Manifest } from '../manifest/manifest.ts'
import { Paths } from '../paths.ts'
import type { DraftInput } from './draft-input.ts'
import { copyInTurns } from './file-copy.ts'
import { FileSet } from './file-set.ts'
import { keepHistory } from './keep-history.ts'
import { mergeLevels } from './merge-levels.ts'
import { nextManifest, recordOrder } from './next-manifest.ts'
import { removedKeysOf, removedRow } from './removed-keys.ts'
import { expiredHistory } from './retention.ts'
import { sealEnded } from './seal-ended.ts'

/** A publish that is worked out and not written yet: its files, and the manifest that will name them. */
export interface Draft {
  readonly files: readonly { path: string; bytes: Uint8Array }[]
  readonly manifest: Manifest
}

/** A publish that is drafted and not known to be written. */
export interface Pending {
  /** Called once its segments are durable. */
  finish(): Draft
  draft?: Draft
}

/** A publish whose rows are encoded. Its manifest waits until the segments are durable, because their names may change until then. */
export interface Drafted {
  /** Called once, with the segments that were consumed since the last publish, in that order. */
  finish(consumed: readonly Consumed[]): Draft
}

/** A small publish: only what changed since the last one. */
export async function draftDelta(input: DraftInput): Promise<Drafted> {
  const { manifest, epoch } = input
  const files = new FileSet(input.encoder)
  const hot = writeHotChanges(input, files)
  const cold = writeColdChanges(input, files)
  // From here on folds may go on: everything this publish holds has been copied.
  await files.encode()
  const tables = { ...hot.tables, ...cold.tables }
  const rows = hot.rows + cold.rows
  return {
    finish(consumed) {
      const segments = durableSegments(consumed)
      const delta: Delta = {
        publish: manifest.publish + 1,
        epoch,
        published_at: input.publishedAt,
        segments: segments.map(({ ulid }) => ulid),
        rows,
        tables,
      }
      return {
        files: files.list,
        manifest: {
          ...nextManifest(input, segments),
          l0: [...manifest.l0, delta],
          l0_count: manifest.l0.length + 1,
          l0_rows: manifest.l0_rows + rows,
        },
      }
    },
  }
}

/**
 * Adds files of the rows that changed since the last publish, and begins to count changes anew. `left` are rows that went to history:
 * a reader that follows this publish removes them.
 */
function writeHotChanges(
  { state, manifest, scope, epoch }: DraftInput,
  files: FileSet,
  left: ReadonlyMap<Table, readonly AnyRow[]> = new Map(),
): { tables: Record<string, DeltaFiles>; rows: number } {
  const paths = new Paths(scope)
  const publish = manifest.publish + 1
  const tables: Record<string, DeltaFiles> = {}
  let count = 0
  for (const [table, hot] of state.hotTables) {
    const entry: { rows?: FileRef; removed?: FileRef } = {}
    const keys = [...hot.removed.values(), ...(left.get(table) ?? []).map((row) => hot.keyOf(row))]
    if (hot.dirty.size > 0) {
      files.addRows(paths.file(table.name, 'l0', publish, epoch), { table, rows: hot.dirty, scope }, (ref) => {
        entry.rows = ref
      })
      count += hot.dirty.size
    }
    if (keys.length > 0) {
      const removed = removedKeysOf(table)
      const path = paths.file(table.name, 'removed', publish, epoch)
      files.addRows(path, { table: removed, rows: keys.map((key) => removedRow(removed, key)), scope }, (ref) => {
        entry.removed = ref
      })
      count += keys.length
    }
    if (hot.dirty.size > 0 || keys.length > 0) tables[table.name] = entry
    hot.clearChanges()
  }
  return { tables, rows: count }
}

function writeColdChanges(
  { state, manifest, scope, epoch }: DraftInput,
  files: FileSet,
): { tables: Record<string, DeltaFiles>; rows: number } {
  const paths = new Paths(scope)
  const tables: Record<string, DeltaFiles> = {}
  let count = 0
  for (const [table, cold] of state.coldTables) {
    if (cold.dirty.size === 0) continue
    const rows = cold.changed()
    const entry: { rows?: FileRef } = {}
    tables[table.name] = entry
    files.addRows(paths.file(table.name, 'l0', manifest.publish + 1, epoch), { table, rows, scope }, (ref) => {
      entry.rows = ref
    })
    count += rows.length
    cold.clearChanges()
  }
  return { tables, rows: count }
}

/**
 * A whole publish: unfinished work is written anew, finished work is sealed into history and leaves memory, recent cold rows become
 * a sorted file. Its cost grows with unfinished work and new rows; older files are touched only when they are merged.
 */
export async function draftBase(input: DraftInput): Promise<Drafted> {
  const { state, manifest, scope, epoch } = input
  const paths = new Paths(scope)
  const publish = manifest.publish + 1
  const files = new FileSet(input.encoder)

  const sealed = sealEnded(input, files)
  // A reader of the last publish needs these to follow. It finds recent cold rows in the sorted files from now on.
  const delta = writeHotChanges(input, files, sealed.owners).tables
  const base: Record<string, FileRef> = {}
  for (const [table, hot] of state.hotTables) {
    if (hot.size === 0) continue
    const path = paths.file(table.name, 'base', publish, epoch)
    files.addRows(path, { table, rows: hot.all(), scope, codec: 'zstd' }, (ref) => {
      base[table.name] = ref
    })
  }
  const captured = [...state.coldTables].map(([table, cold]) => {
    // They leave memory at once, not when the manifest is written: a replay folds what comes next without them, and must write the same.
    const rows = cold.takeRecent()
    input.inTransit.set(table, rows)
    return { table, file: { table, rows: rows.values(), scope, codec: 'zstd', isSortedFile: true } as const }
  })
  // From here on folds may go on: everything this publish holds has been copied, or has left memory.
  await files.encode()
  const sorted: Record<string, readonly SortedFileRef[]> = { ...manifest.sorted_files }
  for (const { table, file } of captured) {
    const known = sorted[table.name] ?? []
    const copy = await copyInTurns(file)
    if (copy.rows === 0) continue
    const added = files.addSortedFile(
      paths.sortedFile(table.name, publish, epoch, 0),
      await input.encoder.encode(copy),
      copy.rows,
      0,
    )
    sorted[table.name] = await mergeLevels(input, files, table, [...known, added])
  }

  const history = await keepHistory(input, files, sealed.entry())
  const dropped = await expiredHistory(input.store, manifest, input.retention, input.nowMs)
  return {
    finish(consumed) {
      const segments = durableSegments(consumed)
      const order = recordOrder(
        input,
        segments.map(({ ulid }) => ulid),
        files,
      )
      return {
        files: files.list,
        manifest: {
          ...nextManifest(input, segments),
          base: { publish, tables: base, delta },
          l0: [],
          l0_count: 0,
          l0_rows: 0,
          sorted_files: sorted,
          ...history,
          order,
          dropped,
        },
      }
    },
  }
}
