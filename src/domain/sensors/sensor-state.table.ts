import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'

export const sensorState = defineTable({
  name: 'sensor_state',
  doc: 'The state of each sensor.',
  key: ['sensor_id'],
  storage: { kind: 'hot' },
  columns: {
    sensor_id: col.string('The sensor.'),
    status: col.oneOf(
      ['ACTIVE', 'PAUSED', 'ERROR'],
      'A paused sensor is not evaluated; one in error is evaluated again, polls after a while.',
    ),
    status_changed_at: col.optional(col.timestamp('When it was paused or resumed.')),
    status_changed_by: col.optional(col.string('Who paused or resumed it.')),
    status_reason: col.optional(col.string('Why.')),
    cursor: col.optional(col.string('Where the next poll begins.')),
    cursor_reset_at: col.optional(col.timestamp('When a user last set the cursor.')),
    cursor_reset_by: col.optional(col.string('Who did.')),
    cursor_reset_reason: col.optional(col.string('Why.')),
    state_version: col.int(
      'Grows with every reset and with every poll that found something or failed; a poll that began from another version is stale.',
    ),
    last_evaluation_at: col.optional(col.timestamp('When it was last evaluated.')),
    last_eval_id: col.optional(col.string('That evaluation.')),
    empty_polls: col.long('Polls since the version changed that found nothing.'),
    empty_since: col.optional(col.timestamp('When the first of them was made.')),
    consecutive_errors: col.int(
      'Failed evaluations since the last good one, or since it was resumed. One that is refused begins the count anew.',
    ),
    failing_since: col.optional(col.timestamp('When the first of them failed; null if there is none.')),
    last_error: col.optional(col.string('Why the last evaluation failed; null if it did not.')),
    last_error_at: col.optional(col.timestamp('When it failed.')),
    backoff_until: col.optional(col.timestamp('No poll is made before, because the last ones failed.')),
    dead_letters: col.long('The number of dead letters.'),
    happenings_waiting: col.long('Happenings in `sensor_happenings`, dead letters among them.'),
    happenings_dropped: col.long('Happenings that were dropped, the oldest first, because too many were waiting.'),
    happenings_dropped_at: col.optional(col.timestamp('When the last one was dropped.')),
  },
})

export type SensorStateRow = Row<typeof sensorState>
