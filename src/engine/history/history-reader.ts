import { countWhile } from '../../lib/collections/binary-search.ts'
import { toMs } from '../../lib/time.ts'
import type { Columns } from '../../model/column.ts'
import type { AnyRow, RowOf, Table } from '../../model/table.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { getChecked, type SortedFileRef } from '../files/file-ref.ts'
import { compareTuples, firstOfKey, type KeyTuple } from '../fold/row-merge.ts'
import { type HistoryEntry, type HistoryFile, isSortedFile, type Manifest } from '../manifest/manifest.ts'
import { findEntry, type PageRef, readPage } from '../manifest/page-list.ts'
import { type BlockRows, blockKeys } from '../parquet/block-rows.ts'
import { decodeRows } from '../parquet/parquet.ts'
import { readGroup, readSortedFileIndex, type SortedFileIndex, weightOf } from '../sorted/index-footer.ts'
import { SizedCache } from '../sorted/sized-cache.ts'
import { type ListQuery, listHistory } from './list-history.ts'
import type { SealedRows } from './sealed-rows.ts'
import { historyTable } from './shape.ts'

/** Where the index of history says that the rows of a run or a backfill are. */
export interface Place {
  readonly publish: number
  readonly listed_at: number | null
}

/** What had ended at one moment. */
export interface EndedWork {
  /** All rows of a table that belong to the run or backfill with this id, in the order of their keys. */
  rowsOf<C extends Columns>(table: Table<C>, ownerId: string, place: Place | undefined): Promise<RowOf<C>[]>
  /** A page of a table that is listed, the newest first. */
  list<C extends Columns>(table: Table<C>, query: ListQuery): Promise<RowOf<C>[]>
  /** True if the rows of a table that this publish sealed are dropped by retention. */
  isDropped(table: Table, publish: number): boolean
}

/** Footers of files and pages of the list, in bytes. A million rows in all tables have some 3 MB of footers. */
const INDEX_BYTES = 24 * 1024 * 1024
const PAGE_BYTES = 4 * 1024 * 1024
/** Row groups kept decoded, half a megabyte each: a run that is looked at is looked at again, and a list has a next page. */
const GROUPS = 24

/** Finds rows of ended work in the history files of one store: one row group of one file for each table. See ADR 0033. */
export class HistoryReader {
  readonly #store: ObjectStore
  readonly #indexes = new SizedCache<SortedFileIndex>(INDEX_BYTES)
  readonly #pages = new SizedCache<readonly PageRef[]>(PAGE_BYTES)
  readonly #entries = new SizedCache<readonly HistoryEntry[]>(PAGE_BYTES)
  readonly #groups = new SizedCache<BlockRows>(GROUPS)

  constructor(store: ObjectStore) {
    this.#store = store
  }

  /** History as a manifest has it. `sealing` are rows that have left memory for files which the manifest does not name yet. */
  at(manifest: Manifest, sealing: SealedRows = new Map()): EndedWork {
    // Read before the first wait: a publish that ends meanwhile moves rows from one to the other.
    const moving: SealedRows = new Map(sealing)
    return {
      rowsOf: async (table, ownerId, place) => typed(table, await this.#rowsOf(manifest, moving, table, ownerId, place)),
      list: async (table, query) => typed(table, await listHistory(this, manifest, moving, table, query)),
      isDropped: (table, publish) => publish < (manifest.dropped[table.name] ?? 0),
    }
  }

  async #rowsOf(
    manifest: Manifest,
    sealing: SealedRows,
    table: Table,
    ownerId: string,
    place: Place | undefined,
  ): Promise<readonly AnyRow[]> {
    const moving = sealing.get(table)?.get(ownerId)
    if (moving !== undefined) return moving
    if (place === undefined) return []
    const entry = await this.#entryOf(manifest, place.publish)
    const file = entry && liveFile(manifest, entry, table)
    if (file === undefined) return []
    if (!isSortedFile(file)) return (await this.plainRows(table, file)).filter((row) => row[firstOfKey(table)] === ownerId)
    return await this.#under(table, file, table.listed === undefined ? [ownerId] : [place.listed_at ?? 0, ownerId])
  }

  async #entryOf({ open_history = [], history }: Manifest, publish: number): Promise<HistoryEntry | undefined> {
    const open = open_history.find((entry) => entry.publish >= publish)
    if (open !== undefined && (open.first ?? open.publish) <= publish) return open
    return await findEntry(history, publish, {
      pages: (page) => this.#pagesIn(page),
      entries: (page) => this.#entriesIn(page),
    })
  }

  /** The rows of a file whose key begins with these parts. */
  async #under(table: Table, file: SortedFileRef, prefix: KeyTuple): Promise<AnyRow[]> {
    const index = await this.index(table, file)
    const { groups } = index
    const before = countWhile(groups.length, (at) => compareTuples(groups[at]!.first_key, prefix) < 0)
    const rows: AnyRow[] = []
    for (let at = Math.max(0, before - 1); at < groups.length; at++) {
      if (compareTuples(groups[at]!.first_key, prefix) > 0) break
      const block = await this.group(index, at)
      const { from, to } = block.range(prefix)
      if (to > from) await block.ready()
      for (let row = from; row < to; row++) rows.push(block.row(row))
    }
    return rows
  }

  /** The entries of the list that may hold what a list wants, newest first. Stops when `isWanted` says so of what lies before an entry. */
  async *entriesBackwards(
    { history }: Manifest,
    isWanted: (entry: HistoryEntry | undefined) => boolean,
  ): AsyncGenerator<HistoryEntry> {
    const [entries, ...levels] = history.levels
    let last: HistoryEntry | undefined
    for (const entry of entries.toReversed()) {
      if (!isWanted(last)) return
      yield entry
      last = entry
    }
    for (const [above, pages] of levels.entries()) {
      for (const page of pages.toReversed()) {
        for await (const entry of this.#pageBackwards(page, above, () => isWanted(last))) {
          if (!isWanted(last)) return
          yield entry
          last = entry
        }
      }
    }
  }

  async *#pageBackwards(page: PageRef, above: number, isWanted: () => boolean): AsyncGenerator<HistoryEntry> {
    if (!isWanted()) return
    if (above === 0) {
      yield* (await this.#entriesIn(page)).toReversed()
      return
    }
    for (const child of (await this.#pagesIn(page)).toReversed()) yield* this.#pageBackwards(child, above - 1, isWanted)
  }

  #pagesIn(page: PageRef): Promise<readonly PageRef[]> {
    return this.#pages.load(page.path, () => readPage(this.#store, page), sizeOf(page))
  }

  #entriesIn(page: PageRef): Promise<readonly HistoryEntry[]> {
    return this.#entries.load(page.path, () => readPage(this.#store, page), sizeOf(page))
  }

  index(table: Table, file: SortedFileRef): Promise<SortedFileIndex> {
    return this.#indexes.load(file.path, () => readSortedFileIndex(this.#store, historyTable(table), file), weightOf)
  }

  /** A row group with its key ready. */
  group(index: SortedFileIndex, at: number): Promise<BlockRows> {
    return this.#groups.load(
      `${index.ref.path}#${at}`,
      () => readGroup(this.#store, index, at, blockKeys),
      () => 1,
    )
  }

  /** All rows of a file of format 1, which has no index. */
  async plainRows(table: Table, file: HistoryFile): Promise<AnyRow[]> {
    return await decodeRows(table, await getChecked(this.#store, file), file.path)
  }
}

/** Files hold rows of every shape; those of a table have its columns. */
function typed<C extends Columns>(table: Table<C>, rows: readonly AnyRow[]): RowOf<C>[] {
  const names = Object.keys(table.columns)
  return rows.filter((row): row is RowOf<C> => names.every((name) => name in row))
}

/** About twice as much as the text of a page. */
const sizeOf = (page: PageRef) => (): number => 2 * page.bytes

/** The file of a table in an entry, unless retention has dropped it. */
export const liveFile = ({ dropped }: Manifest, { publish, tables }: HistoryEntry, table: Table): HistoryFile | undefined =>
  publish < (dropped[table.name] ?? 0) ? undefined : tables[table.name]

/** No row of the entries before this one stands later in lists. What earlier versions sealed was there before it was sealed. */
export function newestBefore({ newest_before, sealed_at }: HistoryEntry, table: Table): number {
  if (newest_before === undefined) return toMs(sealed_at)
  return newest_before[table.name] ?? Number.NEGATIVE_INFINITY
}
