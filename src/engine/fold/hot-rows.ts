import { assert } from '../../lib/assert.ts'
import type { HotRows, KeyPart } from '../../model/rows.ts'
import type { AnyRow, Table } from '../../model/table.ts'

type Node = Map<KeyPart, unknown>
const NONE: ReadonlySet<AnyRow> = new Set()

/**
 * The rows of one hot table: nested maps by key, because joining key parts into one text halves the speed of a fold.
 * Knows which rows changed since the last publish.
 */
export class HotTable implements HotRows {
  readonly table: Table
  /** For a fork: rows that are not changed here are read from there, and copied when they are. */
  readonly #parent: HotTable | undefined
  readonly #depth: number
  readonly #rows: Node = new Map()
  #size = 0
  readonly dirty = new Set<AnyRow>()
  readonly removed = new Map<string, readonly KeyPart[]>()
  /** Rows that changed since somebody last took them, when somebody watches. */
  #watched: Set<AnyRow> | undefined

  constructor(table: Table, parent?: HotTable) {
    this.table = table
    this.#parent = parent
    this.#depth = table.key.length
  }

  /** Rows held here; a fork counts its own and its parent's. */
  get size(): number {
    return this.#size + (this.#parent?.size ?? 0)
  }

  get(k1: KeyPart, k2?: KeyPart, k3?: KeyPart): AnyRow | undefined {
    const own = this.#own(k1, k2, k3)
    if (own !== undefined || this.#parent === undefined) return own
    const inherited = this.#parent.get(k1, k2, k3)
    return inherited === undefined || this.#isHidden(inherited) ? undefined : inherited
  }

  #own(k1: KeyPart, k2?: KeyPart, k3?: KeyPart): AnyRow | undefined {
    const first = this.#rows.get(k1)
    if (this.#depth === 1 || first === undefined) return first as AnyRow | undefined
    const second = (first as Node).get(k2 as KeyPart)
    if (this.#depth === 2 || second === undefined) return second as AnyRow | undefined
    return (second as Node).get(k3 as KeyPart) as AnyRow | undefined
  }

  edit(k1: KeyPart, k2?: KeyPart, k3?: KeyPart): AnyRow | undefined {
    const row = this.get(k1, k2, k3)
    if (row === undefined) return undefined
    if (this.#parent !== undefined && this.#own(k1, k2, k3) === undefined) return this.insert({ ...row })
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
    const { key } = this.table
    let node = this.#rows
    for (let level = 0; level < this.#depth - 1; level++) {
      const part = row[key[level] as string]
      let next = node.get(part) as Node | undefined
      if (next === undefined) {
        next = new Map()
        node.set(part, next)
      }
      node = next
    }
    const last = row[key[this.#depth - 1] as string]
    const before = node.get(last) as AnyRow | undefined
    if (before !== undefined) this.#forget(before)
    else this.#size += 1
    node.set(last, row)
  }

  remove(k1: KeyPart, k2?: KeyPart, k3?: KeyPart): void {
    const row = this.get(k1, k2, k3)
    if (row === undefined) return
    const key = this.keyOf(row)
    if (this.#own(k1, k2, k3) !== undefined) this.unload(row)
    this.removed.set(key.join('\0'), key)
  }

  /** Takes a row out of memory without making it a change: it lives on in history. */
  unload(row: AnyRow): void {
    this.#forget(row)
    this.#size -= 1
    const key = this.keyOf(row)
    const path: Node[] = [this.#rows]
    for (let level = 0; level < this.#depth - 1; level++) {
      const next = (path[level] as Node).get(key[level] as KeyPart)
      assert(next !== undefined, `${this.table.name}: a row that is not there cannot be removed`)
      path.push(next as Node)
    }
    for (let level = this.#depth - 1; level >= 0; level--) {
      const node = path[level] as Node
      if (level < this.#depth - 1 && (path[level + 1] as Node).size > 0) break
      node.delete(key[level] as KeyPart)
    }
  }

  /** The same for all rows under the first part of a key; returns them. */
  unloadUnder(k1: KeyPart): AnyRow[] {
    const rows: AnyRow[] = []
    const first = this.#rows.get(k1)
    if (first === undefined) return rows
    gather(first, this.#depth - 1, rows)
    for (const row of rows) this.#forget(row)
    this.#size -= rows.length
    this.#rows.delete(k1)
    return rows
  }

  under(k1: KeyPart, k2?: KeyPart): Iterable<AnyRow> {
    // Most that are asked for have no timers, nothing that waits for them, and so on.
    if (this.#parent === undefined && !this.#rows.has(k1)) return NONE
    return this.#allUnder(k1, k2)
  }

  *#allUnder(k1: KeyPart, k2?: KeyPart): Iterable<AnyRow> {
    yield* this.#ownUnder(k1, k2)
    if (this.#parent !== undefined) yield* this.#inherited(this.#parent.under(k1, k2))
  }

  *#ownUnder(k1: KeyPart, k2?: KeyPart): Iterable<AnyRow> {
    const first = this.#rows.get(k1)
    if (first === undefined) return
    if (this.#depth === 1) yield first as AnyRow
    else if (k2 === undefined) yield* leaves(first as Node, this.#depth - 1)
    else {
      const second = (first as Node).get(k2)
      if (second === undefined) return
      if (this.#depth === 2) yield second as AnyRow
      else yield* leaves(second as Node, 1)
    }
  }

  /** The first parts of all keys held here. */
  firstKeys(): Iterable<KeyPart> {
    return this.#rows.keys()
  }

  *all(): Iterable<AnyRow> {
    yield* leaves(this.#rows, this.#depth)
    if (this.#parent !== undefined) yield* this.#inherited(this.#parent.all())
  }

  /** Rows of the parent that this fork has neither changed nor removed. */
  *#inherited(rows: Iterable<AnyRow>): Iterable<AnyRow> {
    for (const row of rows) {
      const [k1, k2, k3] = this.keyOf(row)
      if (this.#own(k1 as KeyPart, k2, k3) === undefined && !this.#isHidden(row)) yield row
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

  /** From now on remembers which rows change, for whoever takes them. */
  watch(): void {
    this.#watched ??= new Set()
  }

  /** The rows that changed since this was last asked. */
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

  #forget(row: AnyRow): void {
    this.dirty.delete(row)
    this.#watched?.delete(row)
  }
}

/** The same as `leaves`, for where a generator for every few rows would cost more than the rows. */
function gather(node: unknown, depth: number, rows: AnyRow[]): void {
  if (depth === 0) rows.push(node as AnyRow)
  else for (const child of (node as Node).values()) gather(child, depth - 1, rows)
}

function* leaves(node: Node, depth: number): Iterable<AnyRow> {
  if (depth === 1) yield* node.values() as Iterable<AnyRow>
  else for (const child of node.values()) yield* leaves(child as Node, depth - 1)
}
