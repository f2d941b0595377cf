import { assert } from '../lib/assert.ts'
import type { Columns } from '../model/column.ts'
import type { HotRows, KeyPart } from '../model/rows.ts'
import type { AnyRow, RowOf, Table } from '../model/table.ts'

/** A row for editing that is known to exist. */
export function editKnown<R>(rows: HotRows<R>, k1: KeyPart, k2?: KeyPart, k3?: KeyPart): R {
  const row = rows.edit(k1, k2, k3)
  assert(row !== undefined, 'a row that was read is there to be changed')
  return row
}

/** True if a row that a controller is shown belongs to this table; it narrows the type of the row. */
export function isRowOf<C extends Columns>(of: Table<C>, table: Table, _row: Readonly<AnyRow>): _row is RowOf<C> {
  return table === of
}

/** The version of a row is the latest event that had a part in it. */
export function raiseVersion(row: { row_version: string }, eventId: string): void {
  if (eventId > row.row_version) row.row_version = eventId
}
