import { col } from '../../../model/column.ts'
import { defineTable } from '../../../model/table.ts'

export const sensorWatches = defineTable({
  name: 'sensor_watches',
  doc: 'What asset and run sensors watch. Sensors that are disabled or removed watch nothing.',
  key: ['subject', 'sensor_id'],
  storage: { kind: 'hot' },
  columns: {
    subject: col.string(
      '`asset:` and an asset key, `asset:mart/*` or `asset:*`; the same after `run:` for runs with such an asset, and `run` for every run.',
    ),
    sensor_id: col.string('The sensor.'),
    happenings: col.strings('Which happenings it wants: materialized, check_failed, or final states of runs.'),
  },
})
