import { countWhile } from '../../lib/collections/binary-search.ts'
import { ServoError } from '../../lib/error.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { AnyRow, Table } from '../../model/table.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { SortedFileRef } from '../files/file-ref.ts'
import { compareTuples, type KeyTuple, keyText, mergeRows } from '../fold/row-merge.ts'
import type { BlockRows } from '../parquet/block-rows.ts'
import { type BlockPart, sortedFileColumns } from './file-columns.ts'
import {
  filterRange,
  groupFor,
  type KeyFilters,
  maybeIn,
  parseFilters,
  readGroup,
  readRange,
  readSortedFileIndex,
  type SortedFileDescription,
  type SortedFileIndex,
  weightOf,
} from './index-footer.ts'
import { SizedCache } from './sized-cache.ts'

/*
 * A sorted file: rows of a cold table in one immutable file, in key order, each key once. Any number of sorted files may hold versions
 * of a row; `mergeRows` makes one of them. A sorted file is searched by its footer (the first key of every row group), then
 * a Bloom filter, then one row group: three range reads at most, none for what is cached.
 */
export { mergeSortedFiles, scanSortedFile } from './merge-files.ts'
export { encodeSortedFile } from './write-file.ts'

export interface SortedFileReaderOptions {
  /** For footers and Bloom filters, in bytes, half for each. A million rows take 2 to 3 MB, so this is enough for twenty million. */
  readonly indexBytes?: number
  /** Row groups kept decoded, a few MB each: only for look-ups that come in clusters. */
  readonly rowGroups?: number
}

/** One decodes while the others wait for the store; more would only pile up in memory. */
const READS_AT_ONCE = 4
/** Reading a few filters too many is quicker than a second request. */
const FILTER_GAP_BYTES = 64 * 1024

/** Finds rows by key in sorted files of one store. One reader serves all tables, and shares its memory among them. */
export class SortedFileReader {
  readonly #store: ObjectStore
  readonly #indexes: SizedCache<SortedFileIndex>
  readonly #filterCache: SizedCache<KeyFilters>
  readonly #groups: SizedCache<BlockRows>

  constructor(store: ObjectStore, options: SortedFileReaderOptions = {}) {
    this.#store = store
    const half = (options.indexBytes ?? 64 * 1024 * 1024) / 2
    this.#indexes = new SizedCache(half)
    this.#filterCache = new SizedCache(half)
    this.#groups = new SizedCache(options.rowGroups ?? 4)
  }

  /** The rows with these keys, each in the place of its key; undefined for missing rows. */
  async lookup(table: Table, ref: SortedFileRef, keys: readonly KeyTuple[]): Promise<(AnyRow | undefined)[]> {
    for (const key of keys) checkKey(table, key)
    const rows = new Array<AnyRow | undefined>(keys.length).fill(undefined)
    if (keys.length === 0) return rows
    const index = await this.#index(table, ref)
    const wanted = new Map<number, number[]>()
    for (let i = 0; i < keys.length; i++) {
      const group = groupFor(index, keys[i]!)
      if (group < 0) continue
      const others = wanted.get(group)
      if (others === undefined) wanted.set(group, [i])
      else others.push(i)
    }
    const filters = await this.#filters(index, [...wanted.keys()])
    const likely: [group: number, keys: number[]][] = []
    for (const [group, places] of wanted) {
      const rest = places.filter((i) => maybeIn(filters.get(group)!, keys[i]!))
      if (rest.length > 0) likely.push([group, rest])
    }
    await inParallel(READS_AT_ONCE, likely, async ([group, places]) => {
      const block = await this.#group(index, group)
      for (const i of places) {
        const at = block.find(keys[i]!)
        if (at >= 0) rows[i] = block.row(at)
      }
    })
    return rows
  }

  /** The same in several sorted files at once, with all versions of a row merged. */
  async lookupMerged(table: Table, refs: readonly SortedFileRef[], keys: readonly KeyTuple[]): Promise<(AnyRow | undefined)[]> {
    const found = await Promise.all(refs.map((ref) => this.lookup(table, ref, keys)))
    return keys.map((_, i) => {
      let merged: AnyRow | undefined
      for (const rows of found) {
        const row = rows[i]
        if (row !== undefined) merged = merged === undefined ? row : mergeRows(table, merged, row)
      }
      return merged
    })
  }

  /** The keys that begin with `first` and whose second part begins with `start`, in order, at most so many. */
  async startingWith(table: Table, ref: SortedFileRef, first: KeyPart, start: string, limit: number): Promise<KeyTuple[]> {
    const index = await this.#index(table, ref)
    const found: KeyTuple[] = []
    const from = countWhile(index.groups.length, (at) => compareTuples(index.groups[at]!.first_key, [first, start]) <= 0)
    for (let group = Math.max(0, from - 1); group < index.groups.length; group++) {
      const block = await this.#group(index, group)
      for (let row = block.range([first, start]).from; row < block.rows; row++) {
        const key = block.key(row)
        if (key[0] !== first || !String(key[1]).startsWith(start) || found.length === limit) return found
        found.push(key)
      }
    }
    return found
  }

  /** Rows whose key begins like `key` in its first part and comes after all that begin with `key`, in order, at most so many. */
  async after(table: Table, ref: SortedFileRef, key: KeyTuple, limit: number): Promise<AnyRow[]> {
    const index = await this.#index(table, ref)
    const found: AnyRow[] = []
    const from = countWhile(index.groups.length, (at) => compareTuples(index.groups[at]!.first_key, key) <= 0)
    for (let group = Math.max(0, from - 1); group < index.groups.length; group++) {
      const block = await this.#group(index, group)
      for (let row = block.range(key).to; row < block.rows; row++) {
        if (block.key(row)[0] !== key[0] || found.length === limit) return found
        found.push(block.row(row))
      }
    }
    return found
  }

  /** Rows whose key differs from `key` in the last part alone, and comes before it: the nearest first, at most so many. */
  async before(table: Table, ref: SortedFileRef, key: KeyTuple, limit: number): Promise<AnyRow[]> {
    const index = await this.#index(table, ref)
    const start = key.slice(0, -1)
    const found: AnyRow[] = []
    const last = countWhile(index.groups.length, (at) => compareTuples(index.groups[at]!.first_key, key) < 0) - 1
    if (last < 0) return found
    // What comes right before the key is in this group, if it is in the file at all.
    const filters = (await this.#filters(index, [last])).get(last) ?? []
    if (!maybeIn(filters.slice(0, start.length), start)) return found
    for (let group = last; group >= 0; group--) {
      const block = await this.#group(index, group)
      for (let row = block.range(key).from - 1; row >= 0; row--) {
        if (compareTuples(block.key(row), start) !== 0 || found.length === limit) return found
        found.push(block.row(row))
      }
    }
    return found
  }

  /** The columns of all rows whose key begins with `first`, or of some of their row groups. */
  async *columns(
    table: Table,
    ref: SortedFileRef,
    first: KeyPart,
    isWanted?: (group: number) => boolean,
  ): AsyncGenerator<BlockPart> {
    yield* sortedFileColumns(this.#store, await this.#index(table, ref), first, isWanted)
  }

  /** The index of a sorted file: its row groups. */
  describe(table: Table, ref: SortedFileRef): Promise<SortedFileDescription> {
    return this.#index(table, ref)
  }

  #index(table: Table, ref: SortedFileRef): Promise<SortedFileIndex> {
    return this.#indexes.load(ref.path, () => readSortedFileIndex(this.#store, table, ref), weightOf)
  }

  #group(index: SortedFileIndex, at: number): Promise<BlockRows> {
    return this.#groups.load(`${index.ref.path}#${at}`, () => readGroup(this.#store, index, at), one)
  }

  /** The Bloom filters of some row groups. Those of a file lie side by side, so a batch of look-ups makes few reads. */
  async #filters(index: SortedFileIndex, groups: number[]): Promise<Map<number, KeyFilters>> {
    const filters = new Map<number, KeyFilters>()
    const reads: { start: number; end: number; groups: number[] }[] = []
    for (const at of groups.sort((a, b) => a - b)) {
      const known = this.#filterCache.get(`${index.ref.path}#${at}`)
      if (known !== undefined) {
        filters.set(at, known)
        continue
      }
      const { start, end } = filterRange(index, at)
      const last = reads.at(-1)
      if (last === undefined || start - last.end > FILTER_GAP_BYTES) reads.push({ start, end, groups: [at] })
      else {
        last.end = end
        last.groups.push(at)
      }
    }
    await inParallel(READS_AT_ONCE, reads, async (read) => {
      const bytes = await readRange(this.#store, index.ref, read.start, read.end)
      for (const at of read.groups) {
        const parsed = parseFilters(index, at, bytes, read.start)
        filters.set(at, parsed)
        this.#filterCache.set(`${index.ref.path}#${at}`, parsed, sizeOf(parsed))
      }
    })
    return filters
  }
}

const one = (): number => 1

function sizeOf(filters: KeyFilters): number {
  return filters.reduce((sum, filter) => sum + filter.byteLength + 128, 0)
}

/** A key of another type compares as neither smaller nor larger: it would be found everywhere. */
function checkKey(table: Table, key: KeyTuple): void {
  const right =
    key.length === table.key.length &&
    table.key.every((name, i) => (table.stored[name]!.kind === 'int' ? Number.isInteger(key[i]) : typeof key[i] === 'string'))
  if (!right) {
    throw new ServoError('bug', 'bad_key', `${keyText(key)} is not a key of ${table.name} (${table.key.join(', ')})`, {
      hint: 'A look-up takes every part of the key, in the order of the table.',
      facts: { table: table.name, key },
    })
  }
}

async function inParallel<T>(limit: number, items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values()
  const worker = async (): Promise<void> => {
    for (const item of queue) await work(item)
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
}
