import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent } from '../../model/event.ts'
import { forgetHappenings } from './happenings/happenings.ts'
import { stopWatching } from './happenings/watches.ts'
import { changesSensor, changesWatchers } from './order.ts'
import { sensorDefinitions } from './sensor-definitions.table.ts'

export const SensorRemoved = defineEvent({
  type: 'SensorRemoved',
  version: 1,
  doc: 'A sensor was deleted, or the project no longer declares it. Its history stays, and its messages are still known.',
  payload: z.object({ sensor_id: id, request_id: id, removed_by: id }),
  idempotencyKey: (removal) => `sensor_removed:${removal.sensor_id}:${removal.request_id}`,
  dedup: 'key',
  ordered: [changesSensor, changesWatchers],
  fold({ event, at, payload: { sensor_id }, rows }) {
    const row = rows.hot(sensorDefinitions).edit(sensor_id)
    if (row === undefined || row.removed_at !== null) return applied
    stopWatching(rows, row)
    forgetHappenings(rows, sensor_id, event.event_id)
    row.removed_at = at
    row.row_version = event.event_id
    return applied
  },
})
