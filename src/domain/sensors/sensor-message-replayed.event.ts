import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent } from '../../model/event.ts'
import { editSensorState } from './edit-sensor-state.ts'
import { replayMessage } from './messages.ts'
import { changesSensor } from './order.ts'
import { sensorMessages } from './sensor-messages.table.ts'

export const SensorMessageReplayed = defineEvent({
  type: 'SensorMessageReplayed',
  version: 1,
  doc: 'A user replayed a dead letter. It gets as many tries as a new message.',
  payload: z.object({ sensor_id: id, message_id: id, request_id: id, requested_by: id }),
  idempotencyKey: ({ sensor_id, message_id, request_id }) => `sensor_replay:${sensor_id}:${message_id}:${request_id}`,
  dedup: 'key',
  reads: ({ sensor_id, message_id }) => [{ table: sensorMessages, key: [sensor_id, message_id] }],
  ordered: [changesSensor],
  fold(context) {
    const { event, payload, rows } = context
    const known = rows.cold(sensorMessages).lookup(payload.sensor_id, payload.message_id)
    if (known?.status === 'dead')
      replayMessage(context, known, payload.requested_by, editSensorState(rows, payload.sensor_id, event.event_id))
    return applied
  },
})
