import { toIso } from '../../lib/time.ts'
import type { AnyRow, Table } from '../../model/table.ts'

/** A row as JSON shows it: the stored names and values, moments as ISO 8601. */
export function wireRow(table: Table, row: Readonly<AnyRow>): AnyRow {
  const wire: AnyRow = {}
  for (const [name, value] of Object.entries(row)) {
    wire[name] = table.columns[name]?.kind === 'timestamp' && typeof value === 'number' ? toIso(value) : value
  }
  return wire
}
