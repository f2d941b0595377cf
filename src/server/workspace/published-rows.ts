import type { WireRow } from '../../api/wire-row.ts'
import type { Columns } from '../../model/column.ts'
import type { Table } from '../../model/table.ts'
import type { Sql } from '../sql-rows.ts'

type Selected<T> = keyof WireRow<T> & string

/** Rows of a published table with these columns. `rest` is the SQL that follows the name of the table. */
export async function publishedRows<C extends Columns, N extends Selected<Table<C>> = Selected<Table<C>>>(
  sql: Sql,
  table: Table<C>,
  rest: string,
  columns?: readonly N[],
): Promise<Pick<WireRow<Table<C>>, N>[]> {
  const rows = await sql(`select ${columns?.join(', ') ?? '*'} from ${table.name} ${rest}`)
  // Each view has the columns of its table, and its values are those of JSON: test/golden checks both.
  return rows as Pick<WireRow<Table<C>>, N>[]
}
