import { assert } from '../lib/assert.ts'
import { type Columns, type ColumnValues, col } from './column.ts'

/**
 * How two versions of a cold row become one, as data, so that JavaScript and SQL can both carry it out. Each group is
 * taken whole from the row that wins it: the largest (or smallest) value of `by`, compared column by column; a null
 * never wins. Two columns in the place of one stand for the first of them that is not null. A group carries the columns it is picked by. Of a column in no group and outside the key the larger value stays, and
 * null is the smallest; so it is with `row_version`, unless a group has it.
 * Such a merge is commutative, associative and idempotent: the order in which rows meet does not matter.
 */
export interface MergeGroup {
  readonly pick: 'largest' | 'smallest'
  readonly by: readonly PickedBy[]
  readonly columns: readonly string[]
}

export type PickedBy = string | readonly [unlessNull: string, otherwise: string]

/**
 * Where a table's rows live.
 * - `hot`: in the compactor's memory, because folds read them. With `sealedWith`, rows leave for immutable history when
 *   the row of that owner has ended. An owner declares `ended`.
 * - `cold`: in sorted files that are merged by rule and read one key at a time, however many rows there are.
 */
export type Storage =
  | { readonly kind: 'hot'; readonly sealedWith?: string }
  | { readonly kind: 'cold'; readonly merge: readonly MergeGroup[]; readonly expiresBy?: string }

export interface Ended {
  /** The final state, kept for ever in `history_index`. */
  readonly state: string
  readonly at: number
}

export interface TableSpec<C extends Columns> {
  readonly name: string
  readonly doc: string
  readonly key: readonly (keyof C & string)[]
  readonly columns: C
  readonly storage: Storage
  /** For owners of sealed rows: how this row ended, or undefined while it is unfinished. */
  ended?(row: RowOf<C>): Ended | undefined
  /** Columns for which a sorted file records whether all rows of a row group have the same value: see `Digest`. */
  readonly digest?: readonly (keyof C & string)[]
  /** For a cold table with large rows: how many rows a row group of its sorted files has, fewer than the 5,000 of other tables. */
  readonly groupRows?: number
  /**
   * For a table whose ended rows are listed with the newest first: the column that says when, and the columns that a list can be
   * filtered by, which are text or lists of text.
   */
  readonly listed?: { readonly at: keyof C & string; readonly filters: readonly (keyof C & string)[] }
}

/** A row in memory: the table's own columns and the version. Tenant and workspace are the same for all and added on disk. */
export type RowOf<C extends Columns> = ColumnValues<C> & { row_version: string }
// biome-ignore lint/suspicious/noExplicitAny: a registry holds tables of every shape.
export type AnyRow = Record<string, any>

// biome-ignore lint/suspicious/noExplicitAny: a table of any shape, as the engine sees it.
export interface Table<C extends Columns = any> extends TableSpec<C> {
  /** Every column as it stands on disk, in order. */
  readonly stored: Columns
}

export type Row<T> = T extends Table<infer C> ? RowOf<C> : never

const NAME = /^[a-z][a-z0-9_]*$/

/** Declares a table once: row type, Parquet schema, reference page and golden schema derive from this. */
export function defineTable<const C extends Columns>(spec: TableSpec<C>): Table<C> {
  assert(NAME.test(spec.name), `table name ${spec.name} is not snake_case`)
  assert(spec.key.length >= 1 && spec.key.length <= 3, `${spec.name}: a key has one to three columns`)
  for (const name of Object.keys(spec.columns)) assert(NAME.test(name), `${spec.name}.${name} is not snake_case`)
  const columns: Columns = spec.columns
  for (const name of spec.key) {
    const column = columns[name]
    assert(column !== undefined && !column.nullable, `${spec.name}: key column ${name} must exist and not be nullable`)
    assert(column.kind === 'string' || column.kind === 'int', `${spec.name}: key column ${name} must be text or int`)
  }
  if (spec.storage.kind === 'cold') {
    for (const group of spec.storage.merge) {
      for (const name of [...group.by.flat(), ...group.columns]) {
        assert(name === 'row_version' || name in spec.columns, `${spec.name}: merge rule names the unknown column ${name}`)
      }
      for (const name of group.by) {
        const kinds = typeof name === 'string' ? [] : name.map((each) => columns[each]?.kind)
        assert(
          kinds.every((kind) => kind === 'timestamp'),
          `${spec.name}: of ${name}, one stands for the other, so both must be timestamps`,
        )
      }
    }
  }
  const stored: Columns = {
    tenant_id: col.string('Tenant.'),
    workspace_id: col.string('Workspace.'),
    ...spec.columns,
    row_version: col.string('Id of the event that decided the row as it stands.'),
  }
  return { ...spec, stored }
}
