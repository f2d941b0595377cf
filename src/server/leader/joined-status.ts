import { partitionStatus, type StatusRow } from '../../domain/partitions/partition-status.table.ts'
import { mergeRows } from '../../engine/fold/row-merge.ts'

/** Joins the rows of a partition under all keys that its asset has had. */
export function joinedStatus(rows: readonly (StatusRow | undefined)[]): StatusRow | undefined {
  // Two rows of a table merge into a row of it.
  return rows.reduce((a, b) => (a && b ? (mergeRows(partitionStatus, a, b) as StatusRow) : (a ?? b)), undefined)
}
