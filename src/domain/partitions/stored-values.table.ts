import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'
import { orderColumn } from './order.ts'

/** A look-up decodes a row group, and a value may have a few kilobytes. */
const GROUP_ROWS = 500

export const storedValues = defineTable({
  name: 'stored_values',
  doc: 'The stored value of every partition, if its worker reported a checksum: a small JSON value itself, otherwise the path of its file.',
  key: ['asset_key', 'partition_key'],
  storage: {
    kind: 'cold',
    // As in partition_status: the later materialization wins. Who reads a value compares the id of its materialization.
    merge: [
      {
        pick: 'largest',
        // Removed wins over not removed: the row of a value that was removed has the value no more.
        by: [['materialized_order', 'materialized_at'], 'event_id', 'removed_at'],
        columns: [
          'materialized_order',
          'materialized_at',
          'event_id',
          'materialization_id',
          'path',
          'value',
          'bytes',
          'sha256',
          'removed_at',
          'removed_reason',
          'row_version',
        ],
      },
    ],
  },
  groupRows: GROUP_ROWS,
  columns: {
    asset_key: col.string('The asset.'),
    partition_key: col.string('Canonical partition key; empty for an unpartitioned asset.'),
    materialization_id: col.string('Id of the materialization that stored it.'),
    materialized_at: col.timestamp('When it was materialized.'),
    materialized_order: orderColumn('materialized_at'),
    event_id: col.string('The event that reported it.'),
    path: col.optional(col.string('Path of its file; null for a value that is recorded here.')),
    value: col.optional(col.string('The value as canonical JSON, if it is small; null for a file.')),
    bytes: col.optional(col.long('Size of the file, or of the JSON text in UTF-8.')),
    sha256: col.string('SHA-256 of these bytes.'),
    removed_at: col.optional(col.timestamp('When its bytes were removed; null while they are there.')),
    removed_reason: col.optional(col.string('Why: `expired` or `purged`.')),
  },
})

export type StoredValueRow = Row<typeof storedValues>

/** When a value was made, in the order of the record. */
export const valueMadeIn = (row: Readonly<StoredValueRow>): number => row.materialized_order ?? row.materialized_at
