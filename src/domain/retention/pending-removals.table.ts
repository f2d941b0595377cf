import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const pendingRemovals = defineTable({
  name: 'pending_removals',
  doc: 'Files of removed values that may still be there. A row leaves when its files are deleted.',
  key: ['removal_id'],
  storage: { kind: 'hot' },
  columns: {
    removal_id: col.string('The removal.'),
    asset_key: col.string('The asset.'),
    paths: col.strings('Paths of the files.'),
  },
})
