import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const sensorState = defineTable({
  name: 'sensor_state',
  doc: 'How far each sensor is.',
  key: ['sensor_id'],
  storage: { kind: 'hot' },
  columns: {
    sensor_id: col.string('The sensor.'),
    status: col.oneOf(['ACTIVE', 'PAUSED'], 'A paused sensor is not evaluated.'),
    status_event_id: col.optional(col.string('The pause or resume that decided it.')),
    cursor: col.optional(col.string('Where the next poll begins.')),
    state_version: col.int('Grows with every accepted poll and reset; a poll that started from another version is stale.'),
    last_evaluation_at: col.optional(col.timestamp('When it was last evaluated.')),
    last_eval_id: col.optional(col.string('That evaluation.')),
    last_eval_event_id: col.optional(col.string('The event that recorded it.')),
    consecutive_errors: col.int('Failed polls since the last good one; decides the back-off.'),
    last_error: col.optional(col.string('Why the last poll failed.')),
  },
})
