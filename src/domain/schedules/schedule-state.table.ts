import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'

export const scheduleState = defineTable({
  name: 'schedule_state',
  doc: 'How far each schedule is.',
  key: ['schedule_id'],
  storage: { kind: 'hot' },
  columns: {
    schedule_id: col.string('The schedule.'),
    status: col.oneOf(['ACTIVE', 'PAUSED'], 'A paused schedule records its ticks as skipped.'),
    status_changed_at: col.optional(col.timestamp('When it was paused or resumed.')),
    status_changed_by: col.optional(col.string('Who paused or resumed it.')),
    status_reason: col.optional(col.string('Why.')),
    paused_since: col.optional(
      col.timestamp('Since when it is paused as it is defined now, by itself or with all automation.'),
    ),
    decided_until: col.optional(
      col.timestamp('Every tick up to here is on record or was never due; later ones follow the present definition.'),
    ),
    undecided: col.json('Stretches of time before that whose ticks are still to be recorded, with the definition of then.'),
    last_scheduled_for: col.optional(col.timestamp('The latest tick on record.')),
    last_tick_id: col.optional(col.string('That tick.')),
    last_tick_event_id: col.optional(col.string('The event that recorded it.')),
    last_run_key: col.optional(col.string('The run it asked for, if any.')),
    open_runs: col.strings('Its runs that have not ended.'),
    recent_runs: col.json('How its latest runs ended.'),
  },
})

export type ScheduleStateRow = Row<typeof scheduleState>
