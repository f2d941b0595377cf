import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'

export const staleAssets = defineTable({
  name: 'stale_assets',
  doc: 'Assets that an alert watches and that were found to break their freshness policy, as of the last check.',
  key: ['asset_key'],
  storage: { kind: 'hot' },
  columns: {
    asset_key: col.string('The asset.'),
    stale: col.boolean('False if it was fresh again when it was last looked at.'),
    stale_since: col.timestamp('When it was first found stale.'),
    partitions: col.int('How many of its partitions were stale.'),
    as_of: col.timestamp('When that was found: the later word counts.'),
  },
})
export type StaleAssetRow = Row<typeof staleAssets>
