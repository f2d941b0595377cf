import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'

export const dataVersions = defineTable({
  name: 'data_versions',
  doc: 'The version of the data of every materialization. Data that is made again with the same version changes nothing for what was made from it.',
  key: ['asset_key', 'partition_key', 'event_id'],
  // A row is written once; rows of one event are equal.
  storage: {
    kind: 'cold',
    merge: [{ pick: 'largest', by: ['materialized_at'], columns: ['materialized_at', 'data_version'] }],
  },
  columns: {
    asset_key: col.string('The asset.'),
    partition_key: col.string('Canonical partition key; empty for an unpartitioned asset.'),
    event_id: col.string('The event that told of the materialization.'),
    materialized_at: col.timestamp('When it was materialized.'),
    data_version: col.optional(
      col.string('What the asset reported, or else the SHA-256 of the stored bytes. Null if there is neither.'),
    ),
  },
})

export type DataVersionRow = Row<typeof dataVersions>
