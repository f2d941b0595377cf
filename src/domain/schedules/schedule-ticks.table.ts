import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const tickStatuses = ['triggered', 'skipped', 'failed'] as const

export const scheduleTicks = defineTable({
  name: 'schedule_ticks',
  doc: 'One row per tick of a schedule: triggered, or skipped or failed with the reason.',
  key: ['tick_id'],
  storage: {
    kind: 'cold',
    expiresBy: 'scheduled_for',
    merge: [
      {
        // Only the first event of a tick writes these, so there is nothing to merge; the rule only makes that explicit.
        pick: 'smallest',
        by: ['tick_event_id'],
        columns: [
          'tick_event_id',
          'schedule_id',
          'scheduled_for',
          'evaluated_at',
          'definition_version',
          'asset_selection',
          'partition_selection',
          'status',
          'reason',
          'run_key',
          'request_fingerprint',
        ],
      },
    ],
  },
  columns: {
    tick_id: col.string('{schedule_id}:{epoch}, or {schedule_id}:manual:{…}.'),
    schedule_id: col.optional(col.string('The schedule.')),
    scheduled_for: col.optional(col.timestamp('The moment of the cron expression.')),
    evaluated_at: col.optional(col.timestamp('When the tick was recorded.')),
    definition_version: col.optional(col.string('The definition as it was then.')),
    asset_selection: col.optional(col.strings('What the definition selected then.')),
    partition_selection: col.optional(col.strings('Which partitions.')),
    status: col.optional(col.oneOf(tickStatuses, 'What came of it.')),
    reason: col.optional(col.string('Why it was skipped or failed.')),
    run_key: col.optional(col.string('The run it asked for.')),
    run_id: col.optional(col.string('That run, once requested.')),
    request_fingerprint: col.optional(col.string('What was asked for.')),
    tick_event_id: col.optional(col.string('The event that recorded it.')),
  },
})
