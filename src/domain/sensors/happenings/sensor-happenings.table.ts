import type { Happening } from '../../../contract/evaluation.ts'
import { col } from '../../../model/column.ts'
import { defineTable, type Row } from '../../../model/table.ts'

export const sensorHappenings = defineTable({
  name: 'sensor_happenings',
  doc: 'What happened that asset and run sensors watch, until it is evaluated. Each is a message to one sensor.',
  key: ['sensor_id', 'message_id'],
  storage: { kind: 'hot' },
  columns: {
    sensor_id: col.string('The sensor that watches.'),
    message_id: col.string('The same for the same happening, however often it is reported.'),
    happening: col.json<Happening>('What happened, as the code of the sensor gets it.'),
    happened_at: col.timestamp('When it happened. A sensor gets the oldest first.'),
    dead: col.boolean('Whether it failed too often. Then it waits until a user replays it.'),
  },
})

export type SensorHappeningRow = Row<typeof sensorHappenings>
