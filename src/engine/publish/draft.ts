import { utcDay } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import { historyIndex } from '../../model/system-tables.ts'
import { type AnyRow, defineTable, type Table } from '../../model/table.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { expiredHistory, type Retention, retentionCutoff } from '../fold/retention.ts'
import type { State } from '../fold/state.ts'
import { checksummedJson } from '../ledger/checksummed-json.ts'
import { type DayRange, includesDay } from '../ledger/days.ts'
import { type FileRef, fileRef } from '../parquet/checked.ts'
import type { Encoder } from '../parquet/encoder.ts'
import { copyFile, type FileCopy, type FileToCopy } from '../parquet/file-copy.ts'
import { Paths, type Scope } from '../paths.ts'
import type { RowsInTransit } from '../sorted/cold-store.ts'
import { sortedFileRef } from '../sorted/index-footer.ts'
import { mergeSortedFiles } from '../sorted/merge-files.ts'
import type { Delta, DeltaFiles, HistoryEntry, Manifest, OrderEntry, OrderedPublish, SortedFileRef } from './manifest.ts'
import { appendEntry } from './page-list.ts'

/** A publish that is worked out and not written yet: its files, and the manifest that will name them. */
export interface Draft {
  readonly files: readonly { path: string; bytes: Uint8Array }[]
  readonly manifest: Manifest
}

/** A publish whose files of rows are made. What names its segments waits until those are durable: their names may change until then. */
export interface Drafted {
  /** Asked once, with the segments that were consumed since the last publish, in that order. */
  finish(segments: readonly string[]): Draft
}

export interface DraftInput {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly state: State
  /** The newest manifest; the draft follows it. */
  readonly manifest: Manifest
  readonly epoch: number
  readonly compactor: string
  readonly publishedAt: string
  readonly nowMs: number
  /** How many were folded since the last publish. */
  readonly events: number
  /** The days of the ledger as this publish leaves them. */
  readonly days: Required<Pick<Manifest, 'closed_days' | 'settled_days'>>
  readonly retention: Retention
  /** Filled with the cold rows that a base takes out of memory. */
  readonly inTransit: RowsInTransit
  readonly encoder: Encoder
}

/** Runs of one level that are merged into one of the next. */
export const FILES_PER_LEVEL = 8

const removedTables = new WeakMap<Table, Table>()

/** The table of keys whose rows are gone: what a delta writes beside the rows that changed. */
export function removedKeysOf(table: Table): Table {
  let removed = removedTables.get(table)
  if (removed === undefined) {
    removed = defineTable({
      name: `${table.name}_removed`,
      doc: `Keys removed from ${table.name}.`,
      key: table.key,
      storage: { kind: 'hot' },
      columns: Object.fromEntries(table.key.map((name) => [name, table.columns[name]])),
    }) as Table
    removedTables.set(table, removed)
  }
  return removed
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
    finish(segments) {
      const delta: Delta = {
        publish: manifest.publish + 1,
        epoch,
        published_at: input.publishedAt,
        segments,
        rows,
        tables,
      }
      return {
        files: files.list,
        manifest: {
          ...following(input, segments),
          l0: [...manifest.l0, delta],
          l0_count: manifest.l0.length + 1,
          l0_rows: manifest.l0_rows + rows,
        },
      }
    },
  }
}

/**
 * Writes the rows that changed since the last publish, and from here on counts changes anew. `left` are rows that went
 * elsewhere: for whoever follows, they are gone from here.
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
      files.addRows(path, { table: removed, rows: keys.map((key) => rowOfKey(removed, key)), scope }, (ref) => {
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
    const rows = [...cold.dirty].map((key) => cold.recent.get(key) as AnyRow)
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

const rowOfKey = (table: Table, key: readonly unknown[]): AnyRow => ({
  ...Object.fromEntries(table.key.map((name, i) => [name, key[i]])),
  row_version: '',
})

/**
 * A whole publish: unfinished work is written anew, finished work is sealed into history and leaves memory, recent cold
 * rows become a sorted run. Costs what is unfinished and what is new; nothing older is touched but runs that are merged.
 */
export async function draftBase(input: DraftInput): Promise<Drafted> {
  const { state, manifest, scope, epoch } = input
  const paths = new Paths(scope)
  const publish = manifest.publish + 1
  const files = new FileSet(input.encoder)

  const sealed = sealEnded(input, files, paths, publish)
  // What a reader of the last publish needs to follow; recent cold rows it finds in the sorted files from now on.
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
    // Gone at once, not when the manifest stands: a replay folds what comes next without them, and must write the same.
    const rows = cold.takeRecent()
    input.inTransit.set(table, rows)
    return { table, copy: copyFile({ table, rows: rows.values(), scope, codec: 'zstd', isSortedFile: true }) }
  })
  // From here on folds may go on: everything this publish holds has been copied.
  await files.encode()
  const runs: Record<string, readonly SortedFileRef[]> = { ...manifest.runs }
  for (const { table, copy } of captured) {
    const known = runs[table.name] ?? []
    if (copy.rows === 0) continue
    const added = files.addSortedFile(
      paths.sortedFile(table.name, publish, epoch, 0),
      await input.encoder.encode(copy),
      copy.rows,
      0,
    )
    runs[table.name] = await mergeLevels(input, files, paths, table, [...known, added])
  }

  const history =
    sealed.entry === undefined
      ? { list: manifest.history, pages: [] }
      : appendEntry(manifest.history, sealed.entry, (at, level) => paths.page('history', at, epoch, level))
  for (const page of history.pages) files.list.push(page)
  const dropped = await expiredHistory(input.store, manifest, input.retention, input.nowMs)
  return {
    finish(segments) {
      const next = following(input, segments)
      const order = recordOrder(input, segments, next, files, paths)
      for (const page of order.pages) files.list.push(page)
      return {
        files: files.list,
        manifest: {
          ...next,
          base: { publish, tables: base, delta },
          l0: [],
          l0_count: 0,
          l0_rows: 0,
          runs,
          history: history.list,
          order: order.list,
          dropped,
        },
      }
    },
  }
}

/** Moves everything that has ended out of memory into history files, and notes in the index where it went. */
function sealEnded(
  input: DraftInput,
  files: FileSet,
  paths: Paths,
  publish: number,
): { entry: HistoryEntry | undefined; owners: ReadonlyMap<Table, readonly AnyRow[]> } {
  const { state, scope, epoch, nowMs, publishedAt } = input
  const sealed = new Map<Table, AnyRow[]>()
  const owners = new Map<Table, AnyRow[]>()
  for (const { owner, row, state: endState, at } of [...state.ended()]) {
    const ownerId = row[owner.key[0] as string] as string
    const ownRows = owners.get(owner)
    if (ownRows === undefined) owners.set(owner, [row])
    else ownRows.push(row)
    for (const table of state.sealed.get(owner.name) ?? []) {
      const rows = state.hotTable(table).unloadUnder(ownerId)
      if (rows.length === 0) continue
      const all = sealed.get(table)
      if (all === undefined) sealed.set(table, rows)
      else for (const sealedRow of rows) all.push(sealedRow)
    }
    state.cold(historyIndex).merge({
      owner: owner.name,
      owner_id: ownerId,
      state: endState,
      ended_at: at,
      publish,
      row_version: row['row_version'] as string,
    })
  }
  if (sealed.size === 0) return { entry: undefined, owners }
  const day = utcDay(nowMs)
  const tables: Record<string, FileRef> = {}
  for (const [table, rows] of sealed) {
    const path = paths.historyFile(table.name, day, publish, epoch)
    files.addRows(path, { table, rows, scope, codec: 'zstd' }, (ref) => {
      tables[table.name] = ref
    })
  }
  return { entry: { publish, sealed_at: publishedAt, tables }, owners }
}

async function mergeLevels(
  input: DraftInput,
  files: FileSet,
  paths: Paths,
  table: Table,
  runs: readonly SortedFileRef[],
): Promise<readonly SortedFileRef[]> {
  const { store, scope, manifest, epoch, retention, nowMs } = input
  const publish = manifest.publish + 1
  const keep = retentionCutoff(table, retention, nowMs)
  let levels = runs
  for (let level = 0; ; level++) {
    const full = levels.filter((run) => run.level === level)
    if (full.length < FILES_PER_LEVEL) return levels
    const merged = await mergeSortedFiles(files.over(store), table, scope, full, [], keep === undefined ? {} : { keep })
    const rest = levels.filter((run) => run.level !== level)
    for (const run of full) files.discard(run.path)
    // What is left is newer; a merged run goes before it and after the levels above.
    const above = rest.filter((run) => run.level > level)
    const below = rest.filter((run) => run.level < level)
    levels =
      merged.rows === 0
        ? rest
        : [
            ...above,
            files.addSortedFile(paths.sortedFile(table.name, publish, epoch, level + 1), merged.bytes, merged.rows, level + 1),
            ...below,
          ]
  }
}

function recordOrder(input: DraftInput, segments: readonly string[], next: Manifest, files: FileSet, paths: Paths) {
  const { manifest, epoch, publishedAt } = input
  const { publish } = next
  const publishes: OrderedPublish[] = manifest.l0.map((delta) => ({
    publish: delta.publish,
    epoch: delta.epoch,
    kind: 'delta',
    published_at: delta.published_at,
    segments: delta.segments,
  }))
  publishes.push({
    publish,
    epoch,
    kind: 'base',
    published_at: publishedAt,
    segments,
    retention: input.retention,
  })
  const count = publishes.reduce((sum, entry) => sum + entry.segments.length, 0)
  const entry: OrderEntry = {
    ...files.add(paths.order(publish, epoch), checksummedJson('order', publishes), count),
    publish,
  }
  return appendEntry(manifest.order, entry, (at, level) => paths.page('order', at, epoch, level))
}

/** The next manifest with everything but the files. */
function following(
  { manifest, epoch, compactor, publishedAt, events, scope, days }: DraftInput,
  segments: readonly string[],
): Manifest {
  const { watermarks } = manifest
  const newest = segments.reduce(
    (largest, ulid) => (ulid > largest ? ulid : largest),
    watermarks.events_processed_through ?? '',
  )
  const last = segments.at(-1)
  return {
    ...manifest,
    number: manifest.number + 1,
    epoch,
    compactor,
    published_at: publishedAt,
    publish: manifest.publish + 1,
    ...days,
    ...(manifest.first_publishes && { first_publishes: firstPublishes(manifest, days.settled_days, segments) }),
    watermarks: {
      events_processed_through: newest === '' ? null : newest,
      last_processed_file: last === undefined ? watermarks.last_processed_file : new Paths(scope).segment(last),
      last_processed_at: publishedAt,
      segments: watermarks.segments + segments.length,
      events: watermarks.events + events,
    },
  }
}

function firstPublishes(
  { first_publishes, publish }: Manifest,
  settled: readonly DayRange[],
  segments: readonly string[],
): Record<string, number> {
  const first = Object.fromEntries(Object.entries(first_publishes ?? {}).filter(([day]) => !includesDay(settled, day)))
  for (const ulid of segments) {
    const day = utcDay(ulidTime(ulid))
    if (!includesDay(settled, day)) first[day] ??= publish + 1
  }
  return first
}

/** Files to be written; a file that a later step of the same draft makes needless is taken out again. */
class FileSet {
  readonly list: { path: string; bytes: Uint8Array }[] = []
  readonly #waiting: { path: string; copy: FileCopy; place: (ref: FileRef) => void }[] = []
  readonly #encoder: Encoder

  constructor(encoder: Encoder) {
    this.#encoder = encoder
  }

  add(path: string, bytes: Uint8Array, rows: number): FileRef {
    this.list.push({ path, bytes })
    return fileRef(path, bytes, rows)
  }

  /** Copies rows for a file. `place` is told of it when it has been encoded. */
  addRows(path: string, file: FileToCopy, place: (ref: FileRef) => void): void {
    this.#waiting.push({ path, copy: copyFile(file), place })
  }

  /** Makes files of the rows that were added. */
  async encode(): Promise<void> {
    for (const { path, copy, place } of this.#waiting.splice(0)) {
      place(this.add(path, await this.#encoder.encode(copy), copy.rows))
    }
  }

  addSortedFile(path: string, bytes: Uint8Array, rows: number, level: number): SortedFileRef {
    return sortedFileRef(this.add(path, bytes, rows), bytes, level)
  }

  discard(path: string): void {
    const at = this.list.findIndex((file) => file.path === path)
    if (at >= 0) this.list.splice(at, 1)
  }

  /** The store as it will be once these files are written. */
  over(store: ObjectStore): ObjectStore {
    const find = (path: string): Uint8Array | undefined => this.list.find((file) => file.path === path)?.bytes
    return {
      create: (path, bytes) => store.create(path, bytes),
      put: (path, bytes) => store.put(path, bytes),
      delete: (path) => store.delete(path),
      list: (prefix, options) => store.list(prefix, options),
      folders: (prefix) => store.folders(prefix),
      get: async (path) => find(path) ?? (await store.get(path)),
      getRange: async (path, start, length) =>
        find(path)?.subarray(start, start + length) ?? (await store.getRange(path, start, length)),
      size: async (path) => find(path)?.length ?? (await store.size(path)),
    }
  }
}
