import type { WireRow } from '../../../api/wire-row.ts'
import type { Columns } from '../../../model/column.ts'
import type { KeyPart } from '../../../model/rows.ts'
import type { RowOf, Table } from '../../../model/table.ts'
import type { Knowledge } from '../knowledge.ts'
import { publishedRows } from '../published-rows.ts'

export interface ColdQuestion<C extends Columns> {
  /** Conditions and order in SQL, for rows that are published. */
  readonly where: readonly string[]
  readonly orderBy: string
  readonly limit: number
  /** The columns of the key, and the key of a row. */
  readonly keyColumns: readonly (keyof WireRow<Table<C>> & string)[]
  readonly keyOf: (row: Readonly<RowOf<C>>) => KeyPart[]
  /** The same condition and order for rows in memory. */
  readonly isAsked: (row: Readonly<RowOf<C>>) => boolean
  readonly comesFirst: (a: Readonly<RowOf<C>>, b: Readonly<RowOf<C>>) => boolean
}

/** Rows of a cold table in an order, including those that are not published yet. */
export async function newestRows<C extends Columns>(
  { coldRows, sql }: Pick<Knowledge, 'coldRows' | 'sql'>,
  table: Table<C>,
  { where, orderBy, limit, keyColumns, keyOf, isAsked, comesFirst }: ColdQuestion<C>,
): Promise<RowOf<C>[]> {
  const cold = coldRows(table)
  const recent = [...cold.recent()].filter(isAsked).map(keyOf)
  // A row that changed since it was published is looked at again, and may drop out: so many more are asked for.
  const most = limit + recent.length
  const conditions = where.length === 0 ? '' : `where ${where.join(' and ')}`
  const published = await publishedRows(sql, table, `${conditions} order by ${orderBy} limit ${most}`, keyColumns)
  const keys = new Map<string, KeyPart[]>()
  // The columns of a key are texts and numbers, and JSON shows them as they are.
  for (const row of published) {
    const key = keyColumns.map((name) => row[name]) as KeyPart[]
    keys.set(JSON.stringify(key), key)
  }
  for (const key of recent) keys.set(JSON.stringify(key), key)
  const found = (await cold.lookup([...keys.values()])).filter((row) => row !== undefined)
  return found
    .filter(isAsked)
    .sort((a, b) => (comesFirst(a, b) ? -1 : 1))
    .slice(0, limit)
}
