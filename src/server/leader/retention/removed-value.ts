import type { StoredValueRow } from '../../../domain/partitions/stored-values.table.ts'
import { ServoError } from '../../../lib/error.ts'
import { toIso } from '../../../lib/time.ts'

/** Refuses to read a value whose bytes were removed. */
export function refuseRemoved(row: Pick<StoredValueRow, 'removed_at' | 'removed_reason' | 'asset_key'>, what: string): void {
  if (row.removed_at === null || row.removed_at === undefined) return
  const why = row.removed_reason === 'purged' ? 'a user purged it' : 'the rule of its asset no longer kept it'
  throw new ServoError('not_found', 'value_removed', `the value of ${what} was removed at ${toIso(row.removed_at)}: ${why}`, {
    hint: `Materialize ${what} again, or restore the value from a backup.`,
    facts: { asset_key: row.asset_key, removed_at: toIso(row.removed_at) },
  })
}
