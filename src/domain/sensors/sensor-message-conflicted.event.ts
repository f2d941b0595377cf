import { z } from 'zod'
import { count, id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored } from '../../model/event.ts'
import { noteConflict } from './messages.ts'
import { changesSensor } from './order.ts'
import { sensorMessageConflicts } from './sensor-message-conflicts.table.ts'
import { sensorMessages } from './sensor-messages.table.ts'

export const SensorMessageConflicted = defineEvent({
  type: 'SensorMessageConflicted',
  version: 1,
  doc: 'A message came with the id of one that was accepted, and with another body. It was not evaluated.',
  payload: z.object({ sensor_id: id, message_id: id, body_hash: id, body_size: count.nullish() }),
  idempotencyKey: ({ sensor_id, message_id, body_hash }) => `sensor_conflict:${sensor_id}:${message_id}:${body_hash}`,
  dedup: 'structure',
  reads: ({ sensor_id, message_id, body_hash }) => [
    { table: sensorMessages, key: [sensor_id, message_id] },
    { table: sensorMessageConflicts, key: [sensor_id, message_id, body_hash] },
  ],
  ordered: [changesSensor],
  fold(context) {
    const { payload, rows } = context
    const known = rows.cold(sensorMessages).lookup(payload.sensor_id, payload.message_id)
    if (known?.status !== 'accepted') return ignored('message_not_accepted')
    return noteConflict(context, payload, known) ? applied : duplicate
  },
})
