import { assert } from '../../lib/assert.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { AnyRow } from '../../model/table.ts'

/** A part of a key that a shorter key does not have is undefined. */
type Part = KeyPart | undefined

/**
 * Rows by the parts of their key, one map for each part: joining the parts into one text halves the speed of a fold. A tree has as
 * many levels as the key has parts.
 */
export interface KeyTree {
  readonly isEmpty: boolean
  get(k1: Part, k2?: Part, k3?: Part): AnyRow | undefined
  /** True if there are rows whose key begins with this part. */
  has(k1: Part): boolean
  /** Puts a row into its place, and returns the row that was there. `key` names the columns of the key; the first `level` led here. */
  put(row: AnyRow, key: readonly string[], level: number): AnyRow | undefined
  /** Takes out the row with this key, and every map that it leaves empty. */
  delete(key: readonly KeyPart[], level: number): void
  /** Takes out all rows whose key begins with this part, and adds them to `rows`. */
  deleteUnder(k1: Part, rows: AnyRow[]): void
  /** Rows whose key begins with these parts. */
  under(k1: Part, k2?: Part): Iterable<AnyRow>
  keys(): Iterable<Part>
  all(): Iterable<AnyRow>
  /** Like `all`, but into an array: a generator for every few rows would cost more than the rows. */
  gather(rows: AnyRow[]): void
}

export const keyTree = (levels: number): KeyTree => (levels === 1 ? new Leaf() : new Branch(levels))

class Leaf implements KeyTree {
  readonly #rows = new Map<Part, AnyRow>()

  get isEmpty(): boolean {
    return this.#rows.size === 0
  }

  get(k1: Part): AnyRow | undefined {
    return this.#rows.get(k1)
  }

  has(k1: Part): boolean {
    return this.#rows.has(k1)
  }

  put(row: AnyRow, key: readonly string[], level: number): AnyRow | undefined {
    const part = partOf(row, key, level)
    const before = this.#rows.get(part)
    this.#rows.set(part, row)
    return before
  }

  delete(key: readonly KeyPart[], level: number): void {
    assert(this.#rows.delete(key[level]), 'a row that is not there cannot be removed')
  }

  deleteUnder(k1: Part, rows: AnyRow[]): void {
    const row = this.#rows.get(k1)
    if (row === undefined) return
    rows.push(row)
    this.#rows.delete(k1)
  }

  *under(k1: Part): Iterable<AnyRow> {
    const row = this.#rows.get(k1)
    if (row !== undefined) yield row
  }

  keys(): Iterable<Part> {
    return this.#rows.keys()
  }

  all(): Iterable<AnyRow> {
    return this.#rows.values()
  }

  gather(rows: AnyRow[]): void {
    for (const row of this.#rows.values()) rows.push(row)
  }
}

class Branch implements KeyTree {
  readonly #levels: number
  readonly #children = new Map<Part, KeyTree>()

  constructor(levels: number) {
    this.#levels = levels
  }

  get isEmpty(): boolean {
    return this.#children.size === 0
  }

  get(k1: Part, k2?: Part, k3?: Part): AnyRow | undefined {
    return this.#children.get(k1)?.get(k2, k3)
  }

  has(k1: Part): boolean {
    return this.#children.has(k1)
  }

  put(row: AnyRow, key: readonly string[], level: number): AnyRow | undefined {
    const part = partOf(row, key, level)
    let child = this.#children.get(part)
    if (child === undefined) {
      child = keyTree(this.#levels - 1)
      this.#children.set(part, child)
    }
    return child.put(row, key, level + 1)
  }

  delete(key: readonly KeyPart[], level: number): void {
    const part = key[level]
    const child = this.#children.get(part)
    assert(child !== undefined, 'a row that is not there cannot be removed')
    child.delete(key, level + 1)
    if (child.isEmpty) this.#children.delete(part)
  }

  deleteUnder(k1: Part, rows: AnyRow[]): void {
    this.#children.get(k1)?.gather(rows)
    this.#children.delete(k1)
  }

  under(k1: Part, k2?: Part): Iterable<AnyRow> {
    const child = this.#children.get(k1)
    if (child === undefined) return []
    return k2 === undefined ? child.all() : child.under(k2)
  }

  keys(): Iterable<Part> {
    return this.#children.keys()
  }

  *all(): Iterable<AnyRow> {
    for (const child of this.#children.values()) yield* child.all()
  }

  gather(rows: AnyRow[]): void {
    for (const child of this.#children.values()) child.gather(rows)
  }
}

function partOf(row: AnyRow, key: readonly string[], level: number): Part {
  const name = key[level]
  return name === undefined ? undefined : row[name]
}
