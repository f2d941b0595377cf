import type { State } from '../../engine/fold/state.ts'
import type { EndedWork } from '../../engine/history/history-reader.ts'
import type { ColdRowsToRead } from '../../engine/sorted/cold-store.ts'
import type { Columns } from '../../model/column.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { RowOf, Table } from '../../model/table.ts'
import type { Readable } from './durable-state.ts'

/** A cold table with the type of its rows. */
export interface ColdRowsOf<R> extends Omit<ColdRowsToRead, 'recent' | 'lookup' | 'after' | 'before'> {
  recent(): Iterable<R>
  after(key: readonly KeyPart[], limit: number): Promise<R[]>
  before(key: readonly KeyPart[], limit: number): Promise<R[]>
  lookup(keys: readonly KeyPart[][]): Promise<(R | undefined)[]>
}

/** All rows of a workspace, with their types. */
export interface KnownRows {
  /** Rows of unfinished work. */
  rows(): State
  /** A cold table, including rows that are not published yet. */
  coldRows<C extends Columns>(table: Table<C>): ColdRowsOf<RowOf<C>>
  /** What has ended, as of this moment. */
  history(): EndedWork
}

/** `readable` is read anew each time, because a leader that recovered has other rows. */
export const knownRows = (readable: () => Omit<Readable, 'recordedOrder'>): KnownRows => ({
  rows: () => readable().state,
  coldRows: (table) => coldRowsOf(readable(), table),
  history: () => readable().history,
})

/** A cold table with typed rows. The engine is generic over tables, so the type is given here. */
export const coldRowsOf = <C extends Columns>(from: Pick<Readable, 'coldRows'>, table: Table<C>): ColdRowsOf<RowOf<C>> =>
  from.coldRows(table) as ColdRowsOf<RowOf<C>>

/** One cold row by its key. */
export async function lookup<C extends Columns>(
  known: Pick<KnownRows, 'coldRows'>,
  table: Table<C>,
  ...key: KeyPart[]
): Promise<RowOf<C> | undefined> {
  const [row] = await known.coldRows(table).lookup([key])
  return row
}
