import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'
import { orderColumn } from './order.ts'

export const dataVersions = defineTable({
  name: 'data_versions',
  doc: 'The data version of every materialization. A new materialization with the same version leaves downstream assets fresh.',
  key: ['asset_key', 'partition_key', 'event_id'],
  // A row is written once; rows of one event are equal.
  storage: {
    kind: 'cold',
    merge: [{ pick: 'largest', by: ['materialized_at'], columns: ['materialized_at', 'materialized_order', 'data_version'] }],
  },
  columns: {
    asset_key: col.string('The asset.'),
    partition_key: col.string('Canonical partition key; empty for an unpartitioned asset.'),
    event_id: col.string('The event that reported the materialization.'),
    materialized_at: col.timestamp('When it was materialized.'),
    materialized_order: orderColumn('materialized_at'),
    data_version: col.optional(
      col.string('The version that the asset reported, otherwise the SHA-256 of the stored bytes; null if there is neither.'),
    ),
  },
})

export type DataVersionRow = Row<typeof dataVersions>
