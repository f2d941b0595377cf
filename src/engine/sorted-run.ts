import { ServoError } from '../lib/error.ts'
import type { AnyRow, Table } from '../model/table.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import type { FileRef } from './checked.ts'
import { type Batch, decodeGroup } from './parquet-read.ts'
import { compareParts, type KeyTuple, keyText, mergeRows } from './row-merge.ts'
import { mayContain } from './sorted-run-bloom.ts'
import { SizedCache } from './sorted-run-cache.ts'
import { groupFor, parseBloom, type RunIndex, readRange, readRunIndex, weightOf } from './sorted-run-index.ts'

/*
 * A run: rows of a cold table in one immutable file, in key order, each key once. Any number of runs may hold versions
 * of a row; `mergeRows` says what they come to. A run is searched by its footer (the first key of every row group), then
 * a Bloom filter, then one row group: three range reads at most, none for what is cached.
 */
export { type MergedRun, type MergeOptions, mergeRuns, scanBatches, scanRun } from './sorted-run-merge.ts'
export { encodeRun, runWriter } from './sorted-run-write.ts'

export interface RunReaderOptions {
  /** For footers and Bloom filters, in bytes. A million rows take some 4 MB, so this is enough for ten million. */
  readonly indexBytes?: number
  /** Row groups kept decoded, a few MB each: only for look-ups that come in clusters. */
  readonly rowGroups?: number
}

/** One decodes while the others wait for the store; more would only pile up in memory. */
const GROUPS_AT_ONCE = 4
/** Reading a few filters too many is quicker than asking twice. */
const BLOOM_GAP_BYTES = 64 * 1024

/** Finds rows by key in runs of one store. One reader serves all tables, and shares its memory among them. */
export class RunReader {
  readonly #store: ObjectStore
  readonly #indexes: SizedCache<RunIndex | Uint32Array>
  readonly #groups: SizedCache<Batch>

  constructor(store: ObjectStore, options: RunReaderOptions = {}) {
    this.#store = store
    this.#indexes = new SizedCache(options.indexBytes ?? 64 * 1024 * 1024)
    this.#groups = new SizedCache(options.rowGroups ?? 4)
  }

  /** The rows with these keys, each in the place of its key; undefined for those that are not there. */
  async lookup(table: Table, ref: FileRef, keys: readonly KeyTuple[]): Promise<(AnyRow | undefined)[]> {
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
    const filters = await this.#filters(ref, index, [...wanted.keys()])
    const likely: [group: number, keys: number[]][] = []
    for (const [group, places] of wanted) {
      const filter = filters.get(group)
      const rest = filter === undefined ? places : places.filter((i) => mayContain(filter, keys[i]![0]!))
      if (rest.length > 0) likely.push([group, rest])
    }
    await inParallel(GROUPS_AT_ONCE, likely, async ([group, places]) => {
      const batch = await this.#group(ref, index, group)
      for (const i of places) {
        const at = search(table, batch, keys[i]!)
        if (at >= 0) rows[i] = batch.row(at)
      }
    })
    return rows
  }

  /** The same in several runs at once: what all their versions of a row come to. */
  async lookupMerged(table: Table, refs: readonly FileRef[], keys: readonly KeyTuple[]): Promise<(AnyRow | undefined)[]> {
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

  #index(table: Table, ref: FileRef): Promise<RunIndex> {
    return this.#indexes.load(
      ref.path,
      () => readRunIndex(this.#store, table, ref),
      (index) => weightOf(index as RunIndex),
    ) as Promise<RunIndex>
  }

  #group(ref: FileRef, index: RunIndex, at: number): Promise<Batch> {
    const group = index.footer.groups[at]!
    return this.#groups.load(
      `${ref.path}#${at}`,
      async () =>
        decodeGroup(index.footer, group, {
          start: group.start,
          bytes: await readRange(this.#store, ref, group.start, group.end),
        }),
      () => 1,
    )
  }

  /** The Bloom filters of some row groups. They lie side by side in the file, so those of a batch are few reads. */
  async #filters(ref: FileRef, index: RunIndex, groups: number[]): Promise<Map<number, Uint32Array>> {
    const filters = new Map<number, Uint32Array>()
    const ranges: { start: number; end: number; groups: number[] }[] = []
    for (const at of groups.sort((a, b) => a - b)) {
      const bloom = index.footer.groups[at]!.bloom
      if (bloom === undefined) continue
      const known = this.#indexes.get(`${ref.path}#${at}`) as Uint32Array | undefined
      const last = ranges.at(-1)
      if (known !== undefined) filters.set(at, known)
      else if (last !== undefined && bloom.start - last.end <= BLOOM_GAP_BYTES) {
        last.end = bloom.end
        last.groups.push(at)
      } else ranges.push({ start: bloom.start, end: bloom.end, groups: [at] })
    }
    await inParallel(GROUPS_AT_ONCE, ranges, async (range) => {
      const bytes = await readRange(this.#store, ref, range.start, range.end)
      for (const at of range.groups) {
        const filter = parseBloom(index.footer.groups[at]!, bytes, range.start)
        if (filter === undefined) continue
        filters.set(at, filter)
        this.#indexes.set(`${ref.path}#${at}`, filter, filter.byteLength + 128)
      }
    })
    return filters
  }
}

/** Where a key is in a row group, or -1. */
function search(table: Table, batch: Batch, key: KeyTuple): number {
  const columns = table.key.map((name) => batch.column(name) as ArrayLike<string | number>)
  let low = 0
  let high = batch.length - 1
  while (low <= high) {
    const middle = (low + high) >>> 1
    let order = 0
    for (let i = 0; i < columns.length && order === 0; i++) order = compareParts(columns[i]![middle]!, key[i]!)
    if (order === 0) return middle
    if (order < 0) low = middle + 1
    else high = middle - 1
  }
  return -1
}

/** A key of another type compares as neither smaller nor larger: it would be found everywhere. */
function checkKey(table: Table, key: KeyTuple): void {
  const right =
    key.length === table.key.length &&
    table.key.every((name, i) => typeof key[i] === (table.stored[name]!.kind === 'int' ? 'number' : 'string'))
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
