import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'
import { orderColumn } from './order.ts'

export const partitionStatus = defineTable({
  name: 'partition_status',
  doc: 'The last materialization of every partition of every asset, and separately its last attempt.',
  key: ['asset_key', 'partition_key'],
  storage: {
    kind: 'cold',
    // Concurrent materializations meet here in any order; the later one wins, and a failure never hides a success. The later one is the
    // one that stands later in the order of the record, which is not that of times after a clock was ahead.
    merge: [
      {
        pick: 'largest',
        by: [['last_materialization_order', 'last_materialization_at'], 'last_materialization_event_id'],
        columns: [
          'last_materialization_order',
          'last_materialization_at',
          'last_materialization_event_id',
          'last_materialization_run_id',
          'last_materialization_id',
          'last_materialization_path',
          'last_materialization_code_version',
          'last_materialization_data_version',
          'last_materialization_inputs_at',
          'last_materialization_inputs_order',
        ],
      },
      {
        pick: 'largest',
        by: [['last_attempt_order', 'last_attempt_at'], 'last_attempt_event_id'],
        columns: [
          'last_attempt_order',
          'last_attempt_at',
          'last_attempt_event_id',
          'last_attempt_run_id',
          'last_attempt_outcome',
        ],
      },
      {
        pick: 'largest',
        by: [['wiped_order', 'wiped_at'], 'wiped_event_id'],
        columns: ['wiped_order', 'wiped_at', 'wiped_event_id', 'wiped_by', 'wiped_reason'],
      },
    ],
  },
  // Rows of a block mostly agree in these columns, so that a million partitions are counted without reading one.
  digest: [
    'last_materialization_at',
    'last_materialization_order',
    'last_materialization_inputs_order',
    'last_materialization_code_version',
    'last_materialization_data_version',
    'last_attempt_outcome',
    'wiped_at',
  ],
  columns: {
    asset_key: col.string('The asset.'),
    partition_key: col.string('Canonical partition key; empty for an unpartitioned asset.'),
    partition_values: col.optional(col.map('Dimension → value.')),
    last_materialization_run_id: col.optional(col.string('Run that last materialized it; null when reported from outside.')),
    last_materialization_id: col.optional(col.string('Id of its materialization.')),
    last_materialization_path: col.optional(
      col.string('Path of its value; null if the value is in stored_values, or the asset stores its own data.'),
    ),
    last_materialization_at: col.optional(col.timestamp('When it was last materialized.')),
    last_materialization_order: orderColumn('last_materialization_at'),
    last_materialization_code_version: col.optional(col.string('Version of the code that materialized it.')),
    last_materialization_data_version: col.optional(
      col.string('Version of its data, reported or a checksum; null if there is neither.'),
    ),
    last_materialization_inputs_at: col.optional(
      col.timestamp('When it read its inputs. It does not reflect later changes to them.'),
    ),
    last_materialization_inputs_order: orderColumn('last_materialization_inputs_at'),
    last_materialization_event_id: col.optional(col.string('The event that reported it.')),
    last_attempt_run_id: col.optional(col.string('Run of the last attempt.')),
    last_attempt_at: col.optional(col.timestamp('When that attempt ended.')),
    last_attempt_order: orderColumn('last_attempt_at'),
    last_attempt_outcome: col.optional(col.string('How it ended: SUCCEEDED, FAILED or CANCELLED.')),
    last_attempt_event_id: col.optional(col.string('The event that reported it.')),
    wiped_at: col.optional(col.timestamp('Materializations up to this moment do not count.')),
    wiped_order: orderColumn('wiped_at'),
    wiped_event_id: col.optional(col.string('The event that wiped it.')),
    wiped_by: col.optional(col.string('Who wiped it.')),
    wiped_reason: col.optional(col.string('The reason they gave, if any.')),
  },
})

export type StatusRow = Row<typeof partitionStatus>

/** True if the last materialization does not count any more. */
export const isWiped = (row: Readonly<StatusRow>): boolean => row.wiped_at !== null && wipedIn(row) >= madeIn(row)

/** When a partition was last made, in the order of the record; 0 if never. */
export const madeIn = (row: Readonly<StatusRow>): number => row.last_materialization_order ?? row.last_materialization_at ?? 0

/** When it read its inputs. Rows that are older than this column: no later than it was made. */
export const readIn = (row: Readonly<StatusRow>): number =>
  row.last_materialization_inputs_order ?? row.last_materialization_inputs_at ?? madeIn(row)

export const attemptedIn = (row: Readonly<StatusRow>): number => row.last_attempt_order ?? row.last_attempt_at ?? 0

export const wipedIn = (row: Readonly<StatusRow>): number => row.wiped_order ?? row.wiped_at ?? 0

/** True if there is a materialization that counts: what is made from this partition can read it. */
export const isReadable = (row: StatusRow | undefined): row is StatusRow & { last_materialization_id: string } =>
  row !== undefined && Boolean(row.last_materialization_id) && !isWiped(row)
