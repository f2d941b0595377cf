import { assert } from '../../lib/assert.ts'
import type { ColdRows, KeyPart } from '../../model/rows.ts'
import type { AnyRow, Table } from '../../model/table.ts'
import { mergeRows } from './row-merge.ts'

/** The parts of a key as one text. A shorter key lacks the last parts. */
export function coldKey(key: readonly (KeyPart | undefined)[]): string {
  let text = String(key[0])
  for (let i = 1; i < key.length && key[i] !== undefined; i++) text += `\0${key[i]}`
  return text
}

/**
 * The part of one cold table that is in memory: rows written since the last base, and the stored rows that the current
 * batch of events announced.
 */
export class ColdTable implements ColdRows {
  readonly table: Table
  /** Rows since the last base, by key. */
  recent = new Map<string, AnyRow>()
  /** How often a row was added or changed: a cache that is made of rows sees by this that it is out of date. */
  changes = 0
  /** Keys of the rows that changed since the last publish. */
  readonly dirty = new Set<string>()
  readonly #fetched = new Map<string, AnyRow | undefined>()
  readonly #blank: AnyRow
  readonly #parent: ColdTable | undefined

  constructor(table: Table, parent?: ColdTable) {
    this.table = table
    this.#parent = parent
    this.#blank = Object.fromEntries([...Object.keys(table.columns).map((name) => [name, null]), ['row_version', '']])
  }

  lookup(k1: KeyPart, k2?: KeyPart, k3?: KeyPart): AnyRow | undefined {
    const key = coldKey([k1, k2, k3])
    const recent = this.#recent(key)
    assert(
      recent !== undefined || this.#fetched.has(key),
      `${this.table.name}: the fold reads ${JSON.stringify([k1, k2, k3])} without having announced it`,
    )
    return this.#joined(this.#fetched.get(key), recent)
  }

  /** A stored row merged with what is in memory. */
  over(key: string, stored: AnyRow | undefined): AnyRow | undefined {
    return this.#joined(stored, this.#recent(key))
  }

  #recent(key: string): AnyRow | undefined {
    return this.#joined(this.#parent?.recent.get(key), this.recent.get(key))
  }

  #joined(older: AnyRow | undefined, newer: AnyRow | undefined): AnyRow | undefined {
    return older === undefined || newer === undefined ? (newer ?? older) : mergeRows(this.table, older, newer)
  }

  merge(partial: AnyRow): void {
    this.dirty.add(this.#join({ ...this.#blank, ...partial }))
  }

  /** Adds a stored row of a recent delta without making it a change. */
  load(row: AnyRow): void {
    this.#join(row)
  }

  #join(row: AnyRow): string {
    const key = coldKey(this.table.key.map((name) => row[name]))
    const known = this.recent.get(key)
    this.changes++
    this.recent.set(key, known === undefined ? row : mergeRows(this.table, known, row))
    return key
  }

  /** Every row in memory, those of the parent first; a key may come twice. */
  *rows(): Iterable<AnyRow> {
    if (this.#parent !== undefined) yield* this.#parent.rows()
    yield* this.recent.values()
  }

  /** The rows that changed since the last publish. */
  changed(): AnyRow[] {
    return [...this.dirty].flatMap((key) => this.recent.get(key) ?? [])
  }

  /** Gives the next folds the row that the store holds for a key. */
  provide(key: readonly KeyPart[], stored: AnyRow | undefined): void {
    this.#fetched.set(coldKey(key), stored)
  }

  forgetFetched(): void {
    this.#fetched.clear()
  }

  /** Takes the rows since the last base out of memory, and returns them. */
  takeRecent(): ReadonlyMap<string, AnyRow> {
    const taken = this.recent
    this.recent = new Map()
    this.clearChanges()
    return taken
  }

  clearChanges(): void {
    this.dirty.clear()
  }
}
