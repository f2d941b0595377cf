import { partitionStatus } from '../../domain/partitions/partition-status.table.ts'
import { mergeRows } from '../../engine/fold/row-merge.ts'
import type { AnyRow, Row } from '../../model/table.ts'

/** What is on record of a partition under all keys that its asset has had comes to one row. */
export function joinedStatus(rows: readonly (AnyRow | undefined)[]): Row<typeof partitionStatus> | undefined {
  const joined = rows.reduce((a, b) => (a && b ? mergeRows(partitionStatus, a, b) : (a ?? b)), undefined)
  return joined as Row<typeof partitionStatus> | undefined
}
