import type { Table } from '../../model/table.ts'
import type { FileShape } from '../parquet/schema.ts'

/**
 * A run of a few tasks has a few rows in each table, and a page of a list fifty: a reader decodes a whole row group for them. Smaller
 * groups would make footers larger than what they save.
 */
const GROUP_ROWS = 1_000

export type HistoryTable = Table & Required<Pick<FileShape, 'history'>>

const shapes = new WeakMap<Table, HistoryTable>()

/**
 * A table as its history files have it. Rows that are listed are sorted by the time at which they stand in the list; the index of
 * history knows that time, so that one row is found as quickly as by its key.
 */
export function historyTable(table: Table): HistoryTable {
  const known = shapes.get(table)
  if (known !== undefined) return known
  const { key, listed } = table
  const shape = {
    ...table,
    key: listed === undefined ? key : [listed.at, ...key],
    history: { groupRows: GROUP_ROWS, filters: listed?.filters ?? [] },
  }
  shapes.set(table, shape)
  return shape
}
