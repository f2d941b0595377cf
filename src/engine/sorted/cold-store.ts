import type { Columns } from '../../model/column.ts'
import type { Read } from '../../model/event.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { AnyRow, RowOf, Table } from '../../model/table.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { SortedFileRef } from '../files/file-ref.ts'
import { coldKey } from '../fold/cold-rows.ts'
import { keysByTable, provideRows } from '../fold/provide-rows.ts'
import { compareTuples, type KeyTuple, keyOf, mergeRows, sortedByKey } from '../fold/row-merge.ts'
import type { State } from '../fold/state.ts'
import type { BlockPart } from './file-columns.ts'
import type { SortedFileDescription } from './index-footer.ts'
import { SortedFileReader } from './sorted-file.ts'

/** Cold rows that have left memory for a base that no manifest names yet: by table, then by key. */
export type RowsInTransit = Map<Table, ReadonlyMap<string, AnyRow>>

/** A cold table at one moment: sorted files that hold most of it, and what is in memory. A row is the merge of all its versions. */
export interface ColdRowsToRead {
  readonly files: readonly SortedFileRef[]
  /** Grows whenever a row in memory is added or changed. */
  readonly changes: number
  /** Rows in memory: all rows that are in no file yet, and perhaps others. */
  recent(): Iterable<AnyRow>
  /** The columns of all rows of a sorted file whose key begins with `first`. */
  columns(ref: SortedFileRef, first: KeyPart, isWanted?: (group: number) => boolean): AsyncIterable<BlockPart>
  /** The index of a sorted file: its row groups. */
  describe(ref: SortedFileRef): Promise<SortedFileDescription>
  /** Rows by key, each in the place of its key. */
  lookup(keys: readonly KeyPart[][]): Promise<(AnyRow | undefined)[]>
  /** The second parts of keys that begin with `first`, as far as they begin with `start`; at most so many of each file, and of memory. */
  startingWith(first: KeyPart, start: string, limit: number): Promise<ReadonlySet<string>>
  /** Rows whose key begins like `key` in its first part and comes after all that begin with `key`, in order, at most so many. */
  after(key: readonly KeyPart[], limit: number): Promise<AnyRow[]>
  /** Rows whose key differs from `key` in the last part alone, and comes before it: the nearest first, at most so many. */
  before(key: readonly KeyPart[], limit: number): Promise<AnyRow[]>
}

export interface ColdStoreOptions {
  readonly store: ObjectStore
  /** The sorted files of a table as the newest manifest has them. */
  readonly filesOf: (table: Table) => readonly SortedFileRef[]
  /** Returns the error to throw for a read that failed; without it, or if it returns none, the error is thrown as it is. */
  readonly explain?: (error: unknown) => Promise<unknown>
}

/** Finds cold rows wherever they are: in sorted files, on the way to one, or in memory. */
export class ColdStore {
  /** Filled by a base, and emptied when its manifest is written. */
  readonly inTransit: RowsInTransit = new Map()
  readonly #options: ColdStoreOptions
  readonly #reader: SortedFileReader
  /** What was looked up before it was needed, and in which files. Files never change. */
  readonly #ahead = new Map<
    Table,
    { readonly files: readonly SortedFileRef[]; readonly rows: Map<string, AnyRow | undefined> }
  >()

  constructor(options: ColdStoreOptions) {
    this.#options = options
    this.#reader = new SortedFileReader(options.store)
  }

  /** A cold table for a reader that goes through many of its rows. */
  rows(table: Table, state: State): ColdRowsToRead {
    const memory = state.coldTable(table)
    const inTransit = this.inTransit.get(table)
    return {
      files: this.#options.filesOf(table),
      changes: memory.changes,
      *recent() {
        if (inTransit !== undefined) yield* inTransit.values()
        yield* memory.rows()
      },
      columns: (ref, first, isWanted) => this.#reader.columns(table, ref, first, isWanted),
      describe: (ref) => this.#reader.describe(table, ref),
      lookup: (keys) => this.lookup(table, state, keys),
      startingWith: (first, start, limit) => this.#startingWith(table, state, { first, start, limit }),
      after: (key, limit) => this.#near(table, state, { key, limit, side: 'after' }),
      before: (key, limit) => this.#near(table, state, { key, limit, side: 'before' }),
    }
  }

  /** Rows by key, each in the place of its key, with what is in memory. */
  async lookup<C extends Columns>(
    table: Table<C>,
    state: State,
    keys: readonly KeyPart[][],
  ): Promise<(RowOf<C> | undefined)[]> {
    const stored = await this.#stored(table, keys)
    const memory = state.coldTable(table)
    const rows = keys.map((key, i) => memory.over(coldKey(key), stored[i]))
    // Files and memory hold rows of every shape; those of a table have its columns.
    return rows as (RowOf<C> | undefined)[]
  }

  async #startingWith(
    table: Table,
    state: State,
    { first, start, limit }: { first: KeyPart; start: string; limit: number },
  ): Promise<Set<string>> {
    const { files, recent } = this.rows(table, state)
    const [owner = '', second = ''] = table.key
    const found = new Set<string>()
    for (const row of recent()) if (row[owner] === first && String(row[second]).startsWith(start)) found.add(row[second])
    const stored = await Promise.all(files.map((ref) => this.#reader.startingWith(table, ref, first, start, limit)))
    for (const [, id] of stored.flat()) found.add(String(id))
    return found
  }

  /** Every file has at most so many, and so has what they have together: none of the nearest is missed, nor a version of it. */
  async #near(
    table: Table,
    state: State,
    { key, limit, side }: { key: KeyTuple; limit: number; side: 'after' | 'before' },
  ): Promise<AnyRow[]> {
    const { files, recent } = this.rows(table, state)
    const [first = '', second = ''] = table.key
    const isNear = (row: AnyRow): boolean => {
      // Most rows in memory are of others, and are passed over without an array for the key of each.
      if (row[first] !== key[0] || (side === 'before' && key.length > 2 && row[second] !== key[1])) return false
      const own = keyOf(table, row)
      if (side === 'after') return compareTuples(own, key) > 0
      return compareTuples(own, key.slice(0, -1)) === 0 && compareTuples(own, key) < 0
    }
    const inMemory = [...recent()].filter(isNear)
    const stored = await Promise.all(files.map((ref) => this.#reader[side](table, ref, key, limit)))
    const rows = sortedByKey(table, [...stored.flat(), ...inMemory])
    return (side === 'after' ? rows : rows.toReversed()).slice(0, limit)
  }

  /** Gives the next folds the stored rows that they announced, so that the fold itself does no IO. */
  async provide(state: State, reads: readonly Read[]): Promise<void> {
    await provideRows(state, reads, (table, keys) => this.#stored(table, keys))
  }

  /** Looks up now what the folds of a near moment will announce. It spares them the wait, and changes nothing else. */
  async lookAhead(reads: readonly Read[]): Promise<void> {
    this.#ahead.clear()
    for (const [table, keys] of keysByTable(reads)) {
      const files = this.#options.filesOf(table)
      const rows = await this.#reader.lookupMerged(table, files, [...keys.values()])
      this.#ahead.set(table, { files, rows: new Map([...keys.keys()].map((key, i) => [key, rows[i]])) })
    }
  }

  /** What sorted files hold of these keys, and what is on the way to one. */
  async #stored(table: Table, keys: readonly KeyPart[][]): Promise<(AnyRow | undefined)[]> {
    // Both are read before the first wait: a publish that ends meanwhile moves rows from one to the other.
    const [files, inTransit] = [this.#options.filesOf(table), this.inTransit.get(table)]
    const rows = await this.#read(table, files, keys)
    if (inTransit === undefined) return rows
    return keys.map((key, i) => {
      const [older, moving] = [rows[i], inTransit.get(coldKey(key))]
      return older && moving ? mergeRows(table, older, moving) : (older ?? moving)
    })
  }

  async #read(table: Table, files: readonly SortedFileRef[], keys: readonly KeyPart[][]): Promise<(AnyRow | undefined)[]> {
    const known = this.#knownAhead(table, files)
    const missing = known === undefined ? keys : keys.filter((key) => !known.has(coldKey(key)))
    let read: (AnyRow | undefined)[]
    try {
      read = missing.length === 0 ? [] : await this.#reader.lookupMerged(table, files, missing)
    } catch (error) {
      throw (await this.#options.explain?.(error)) ?? error
    }
    if (known === undefined) return read
    const rows = read.values()
    return keys.map((key) => {
      const text = coldKey(key)
      return known.has(text) ? known.get(text) : rows.next().value
    })
  }

  /** What was looked up ahead in just these files. */
  #knownAhead(table: Table, files: readonly SortedFileRef[]): ReadonlyMap<string, AnyRow | undefined> | undefined {
    const ahead = this.#ahead.get(table)
    const isOfThese = ahead?.files.length === files.length && files.every(({ path }, i) => path === ahead.files[i]?.path)
    return isOfThese ? ahead.rows : undefined
  }
}
