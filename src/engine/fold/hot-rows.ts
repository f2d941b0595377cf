import type { HotRows, KeyPart } from '../../model/rows.ts'
import type { AnyRow, Table } from '../../model/table.ts'
import { type KeyTree, keyTree } from './key-tree.ts'

const NONE: ReadonlySet<AnyRow> = new Set()

/** The rows of one hot table by key. Knows which of them changed since the last publish. */
export class HotTable implements HotRows {
  readonly table: Table
  /** For a fork: rows are read from its parent until they are changed here, and copied then. */
  readonly #parent: HotTable | undefined
  readonly #rows: KeyTree
  #size = 0
  dirty: Set<AnyRow> = new Set()
  readonly removed = new Map<string, readonly KeyPart[]>()
  /** Rows that changed since they were last taken; undefined when they are not watched. */
  #watched: Set<AnyRow> | undefined

  constructor(table: Table, parent?: HotTable) {
    this.table = table
    this.#parent = parent
    this.#rows = keyTree(table.key.length)
  }

  /** Rows held here; a fork counts its own and its parent's. */
  get size(): number {
    return this.#size + (this.#parent?.size ?? 0)
  }

  get(k1: KeyPart, k2?: KeyPart, k3?: KeyPart): AnyRow | undefined {
    const own = this.#rows.get(k1, k2, k3)
    if (own !== undefined || this.#parent === undefined) return own
    const inherited = this.#parent.get(k1, k2, k3)
    return inherited === undefined || this.#isHidden(inherited) ? undefined : inherited
  }

  edit(k1: KeyPart, k2?: KeyPart, k3?: KeyPart): AnyRow | undefined {
    const row = this.get(k1, k2, k3)
    if (row === undefined) return undefined
    if (this.#parent !== undefined && this.#rows.get(k1, k2, k3) === undefined) return this.insert({ ...row })
    this.#touch(row)
    return row
  }

  insert(row: AnyRow): AnyRow {
    this.load(row)
    this.#touch(row)
    if (this.removed.size > 0) this.removed.delete(this.keyOf(row).join('\0'))
    return row
  }

  /** Puts a stored row into memory without making it a change. */
  load(row: AnyRow): void {
    const before = this.#rows.put(row, this.table.key, 0)
    if (before !== undefined) this.#forget(before)
    else this.#size += 1
  }

  remove(k1: KeyPart, k2?: KeyPart, k3?: KeyPart): void {
    const row = this.get(k1, k2, k3)
    if (row === undefined) return
    const key = this.keyOf(row)
    if (this.#rows.get(k1, k2, k3) !== undefined) this.unload(row)
    this.removed.set(key.join('\0'), key)
  }

  /** Takes a row out of memory without making it a change: it lives on in history. */
  unload(row: AnyRow): void {
    this.#forget(row)
    this.#size -= 1
    this.#rows.delete(this.keyOf(row), 0)
  }

  /** The same for all rows under each of these first parts of a key; returns them by that part, if there are any. */
  unloadUnder<K extends KeyPart>(firstParts: Iterable<K>): Map<K, AnyRow[]> {
    const unloaded = new Map<K, AnyRow[]>()
    for (const part of firstParts) {
      const rows: AnyRow[] = []
      this.#rows.deleteUnder(part, rows)
      if (rows.length === 0) continue
      this.#size -= rows.length
      unloaded.set(part, rows)
    }
    if (unloaded.size > 0) this.#forgetAll(unloaded.values())
    return unloaded
  }

  under(k1: KeyPart, k2?: KeyPart): Iterable<AnyRow> {
    if (this.#parent !== undefined) return this.#allUnder(this.#parent, k1, k2)
    // Mostly there is nothing: no timer of this task, no event that waits for it.
    return this.#rows.has(k1) ? this.#rows.under(k1, k2) : NONE
  }

  *#allUnder(parent: HotTable, k1: KeyPart, k2?: KeyPart): Iterable<AnyRow> {
    yield* this.#rows.under(k1, k2)
    yield* this.#inherited(parent.under(k1, k2))
  }

  /** The first parts of all keys held here. */
  firstKeys(): KeyPart[] {
    return [...this.#rows.keys()].filter((part) => part !== undefined)
  }

  *all(): Iterable<AnyRow> {
    yield* this.#rows.all()
    if (this.#parent !== undefined) yield* this.#inherited(this.#parent.all())
  }

  /** The row that has the same key as this one. */
  rowWithKey(other: AnyRow): AnyRow | undefined {
    const [k1, k2, k3] = this.keyOf(other)
    return k1 === undefined ? undefined : this.get(k1, k2, k3)
  }

  /** Rows of the parent that this fork has neither changed nor removed. */
  *#inherited(rows: Iterable<AnyRow>): Iterable<AnyRow> {
    for (const row of rows) {
      const [k1, k2, k3] = this.keyOf(row)
      if (this.#rows.get(k1, k2, k3) === undefined && !this.#isHidden(row)) yield row
    }
  }

  #isHidden(row: AnyRow): boolean {
    return this.removed.size > 0 && this.removed.has(this.keyOf(row).join('\0'))
  }

  clearChanges(): void {
    this.dirty.clear()
    this.removed.clear()
  }

  keyOf(row: AnyRow): KeyPart[] {
    return this.table.key.map((name) => row[name])
  }

  /** From now on remembers which rows change, for `takeChanged`. */
  watch(): void {
    this.#watched ??= new Set()
  }

  /** The rows that changed since the last call. */
  takeChanged(): ReadonlySet<AnyRow> {
    const changed = this.#watched
    if (changed === undefined || changed.size === 0) return NONE
    this.#watched = new Set()
    return changed
  }

  #touch(row: AnyRow): void {
    this.dirty.add(row)
    this.#watched?.add(row)
  }

  /** Of many rows, most leave at once: noting those that stay is less work than striking out each of the others. */
  #forgetAll(unloaded: Iterable<readonly AnyRow[]>): void {
    const stays = new Set<AnyRow>()
    for (const row of this.#rows.all()) if (this.dirty.has(row)) stays.add(row)
    this.dirty = stays
    if (this.#watched === undefined || this.#watched.size === 0) return
    for (const rows of unloaded) for (const row of rows) this.#watched.delete(row)
  }

  #forget(row: AnyRow): void {
    this.dirty.delete(row)
    this.#watched?.delete(row)
  }
}
