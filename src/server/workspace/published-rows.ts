import type { WireRow } from '../../api/wire-row.ts'
import type { Columns } from '../../model/column.ts'
import type { Table } from '../../model/table.ts'
import type { Sql } from '../sql-rows.ts'

type Selected<T> = keyof WireRow<T> & string

/** Rows of a published table, as far as these columns go. `rest` is what follows the name of the table. */
export async function publishedRows<C extends Columns, N extends Selected<Table<C>> = Selected<Table<C>>>(
  sql: Sql,
  table: Table<C>,
  rest: string,
  columns?: readonly N[],
): Promise<Pick<WireRow<Table<C>>, N>[]> {
  const rows = await sql(`select ${columns?.join(', ') ?? '*'} from ${table.name} ${rest}`)
  // A view has the columns of its table, with the values that JSON has for their kinds: test/golden keeps both so.
  return rows as Pick<WireRow<Table<C>>, N>[]
}
