import type { Columns } from './column.ts'
import type { AnyRow, RowOf, Table } from './table.ts'

export type KeyPart = string | number

/** The hot rows of one table as a fold sees them: current, indexed by key, free to change through `edit`. */
export interface HotRows<R = AnyRow> {
  get(k1: KeyPart, k2?: KeyPart, k3?: KeyPart): Readonly<R> | undefined
  /** The row, to be changed. A change of a row that was only read with `get` is not stored. */
  edit(k1: KeyPart, k2?: KeyPart, k3?: KeyPart): R | undefined
  insert(row: R): R
  remove(k1: KeyPart, k2?: KeyPart, k3?: KeyPart): void
  /** Rows whose key starts with these parts. */
  under(k1: KeyPart, k2?: KeyPart): Iterable<Readonly<R>>
  all(): Iterable<Readonly<R>>
}

/** The cold rows of one table as a fold sees them: it adds partial rows, and reads only keys it announced in `reads`. */
export interface ColdRows<R = AnyRow> {
  lookup(k1: KeyPart, k2?: KeyPart, k3?: KeyPart): Readonly<R> | undefined
  /** Adds what this event knows of the row; columns left out stay as they are. */
  merge(partial: Partial<R> & { row_version: string }): void
}

export interface Rows {
  hot<C extends Columns>(table: Table<C>): HotRows<RowOf<C>>
  cold<C extends Columns>(table: Table<C>): ColdRows<RowOf<C>>
}
