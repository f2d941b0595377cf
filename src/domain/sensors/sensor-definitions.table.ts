import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const sensorDefinitions = defineTable({
  name: 'sensor_definitions',
  doc: 'Sensors as declared.',
  key: ['sensor_id'],
  storage: { kind: 'hot' },
  columns: {
    sensor_id: col.string('Stable id.'),
    sensor_name: col.string('Name, free to change.'),
    sensor_type: col.oneOf(['push', 'poll'], 'A push sensor gets messages, a poll sensor asks at intervals.'),
    min_interval_sec: col.int('Least time between two polls.'),
    asset_selection: col.strings('Assets it may run.'),
    config: col.optional(col.json('Source, path, topic and the like.')),
    enabled: col.boolean('A disabled sensor does nothing at all.'),
    created_at: col.timestamp('When it was first declared.'),
  },
})
