import type { Reactor } from '../../engine/loop/loop.ts'
import type { Columns } from '../../model/column.ts'
import type { RowOf, Table } from '../../model/table.ts'

/** A reactor to the rows of one table, with their type. */
export const reactor = <C extends Columns>(watches: Table<C>, react: (row: Readonly<RowOf<C>>) => void): Reactor => ({
  watches,
  react,
})
