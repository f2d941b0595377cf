import { toIso } from '../lib/time.ts'
import type { Column, Columns } from '../model/column.ts'
import type { RowOf, Table } from '../model/table.ts'

/** The value of a column in JSON: ISO 8601 for a timestamp, everything else as it is in memory. */
export type WireValue<C> = C extends Column<infer T, infer K> ? (K extends 'timestamp' ? string | Extract<T, null> : T) : never

/** A row of a table as JSON shows it. */
export type WireRow<T> =
  T extends Table<infer C> ? { readonly [K in keyof C]: WireValue<C[K]> } & { readonly row_version: string } : never

export function wireRow<C extends Columns>(table: Table<C>, row: Readonly<RowOf<C>>): WireRow<Table<C>> {
  const wire: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(row)) {
    wire[name] = table.columns[name]?.kind === 'timestamp' && typeof value === 'number' ? toIso(value) : value
  }
  // Each column was converted to its type in WireValue.
  return wire as WireRow<Table<C>>
}
