import { type AnyRow, defineTable, type Table } from '../../model/table.ts'

const removedTables = new WeakMap<Table, Table>()

/** The table of keys whose rows are gone: what a delta writes beside the rows that changed. */
export function removedKeysOf(table: Table): Table {
  const known = removedTables.get(table)
  if (known !== undefined) return known
  const removed = defineTable({
    name: `${table.name}_removed`,
    doc: `Keys removed from ${table.name}.`,
    key: table.key,
    storage: { kind: 'hot' },
    columns: Object.fromEntries(table.key.map((name) => [name, table.columns[name]])),
  })
  removedTables.set(table, removed)
  return removed
}

/** A row of that table. */
export const removedRow = (table: Table, key: readonly unknown[]): AnyRow => ({
  ...Object.fromEntries(table.key.map((name, i) => [name, key[i]])),
  row_version: '',
})
