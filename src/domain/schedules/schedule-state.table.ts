import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const scheduleState = defineTable({
  name: 'schedule_state',
  doc: 'How far each schedule is.',
  key: ['schedule_id'],
  storage: { kind: 'hot' },
  columns: {
    schedule_id: col.string('The schedule.'),
    status: col.oneOf(['ACTIVE', 'PAUSED'], 'A paused schedule records its ticks as skipped.'),
    status_event_id: col.optional(col.string('The pause or resume that decided it.')),
    status_changed_at: col.optional(col.timestamp('When it was paused or resumed.')),
    last_scheduled_for: col.optional(col.timestamp('The latest tick of its cron.')),
    last_tick_id: col.optional(col.string('That tick.')),
    last_tick_event_id: col.optional(col.string('The event that recorded it.')),
    last_run_key: col.optional(col.string('The run it asked for, if any.')),
  },
})
