import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'
import { outcomes } from '../tasks/task-attempts.table.ts'

export const valueVersions = defineTable({
  name: 'value_versions',
  doc: 'Every value that an attempt stored, in the order in which they were made: how large it is, and whether its bytes were removed. The values themselves are in files and in stored_values.',
  // By asset in the order of time: what retention has looked at is left behind and not read again.
  key: ['asset_key', 'event_id', 'partition_key'],
  storage: {
    kind: 'cold',
    merge: [
      {
        pick: 'largest',
        by: ['materialized_at'],
        columns: ['materialized_at', 'materialization_id', 'outcome', 'path', 'bytes', 'partitions'],
      },
      // The first removal is the one that happened.
      {
        pick: 'smallest',
        by: ['removed_at', 'removed_event_id'],
        columns: ['removed_at', 'removed_event_id', 'removed_reason', 'removed_by'],
      },
    ],
  },
  columns: {
    asset_key: col.string('The asset.'),
    event_id: col.string('The event that reported it.'),
    partition_key: col.string('Canonical partition key; empty for an unpartitioned asset.'),
    materialized_at: col.optional(col.timestamp('When it was made.')),
    materialization_id: col.optional(col.string('Id of the materialization that stored it.')),
    outcome: col.optional(
      col.string(`How the attempt ended: ${outcomes.join(', ')}. A value that a check refused is stored too.`),
    ),
    path: col.optional(col.string('Path of its file; null for a small value, which is recorded with its event.')),
    bytes: col.optional(col.long('Size of the file, or of the JSON text in UTF-8.')),
    partitions: col.optional(col.int('How many partitions the value is of: more than one if a range was made at once.')),
    removed_at: col.optional(col.timestamp('When its bytes were removed; null while they are there.')),
    removed_event_id: col.optional(col.string('The event that says so.')),
    removed_reason: col.optional(col.string('Why: `expired` by the rule of the asset, or `purged`.')),
    removed_by: col.optional(col.string('Who removed it: `retention`, or the user who asked.')),
  },
})

export type ValueVersionRow = Row<typeof valueVersions>
