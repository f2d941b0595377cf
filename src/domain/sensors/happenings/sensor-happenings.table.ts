import type { Happening } from '../../../contract/evaluation.ts'
import { col } from '../../../model/column.ts'
import { defineTable, type Row } from '../../../model/table.ts'

type WithoutMoment<T> = T extends unknown ? Omit<T, 'at'> : never
/** What happened. The moment is a column of its own: a fold reads and writes no dates. */
export type HappeningFacts = WithoutMoment<Happening>

export const sensorHappenings = defineTable({
  name: 'sensor_happenings',
  doc: 'Events of this workspace that asset and run sensors watch, until they are evaluated. Each is a message to one sensor.',
  key: ['sensor_id', 'message_id'],
  storage: { kind: 'hot' },
  columns: {
    sensor_id: col.string('The sensor that watches.'),
    message_id: col.string('The same for the same happening, however often it is reported.'),
    happening: col.json<HappeningFacts>('The event, as the code of the sensor gets it.'),
    happened_at: col.timestamp('When it happened. A sensor gets the oldest first.'),
    chain: col.optional(
      col.int(
        'How many runs in a row sensors had asked for when it happened; null if no sensor asked for its run, or a user replayed it.',
      ),
    ),
    dead: col.boolean('True if it is a dead letter, which waits until a user replays it.'),
  },
})

export type SensorHappeningRow = Row<typeof sensorHappenings>
