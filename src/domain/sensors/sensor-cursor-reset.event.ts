import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent } from '../../model/event.ts'
import { sensorSubject } from '../subjects.ts'
import { editSensorState } from './edit-sensor-state.ts'

export const SensorCursorReset = defineEvent({
  type: 'SensorCursorReset',
  version: 1,
  doc: 'A user set the cursor of a sensor. Polls that are under way become stale.',
  payload: z.object({ sensor_id: id, request_id: id, cursor: z.string().max(65_536).nullable(), changed_by: id }),
  idempotencyKey: (reset) => `sensor_reset:${reset.sensor_id}:${reset.request_id}`,
  dedup: 'key',
  ordered: [
    {
      with: ['SensorCursorReset', 'SensorEvaluated'],
      when: (mine, other) => mine.sensor_id === other.sensor_id,
      why: 'A reset and a poll both move the cursor; each counts from where the one before left it.',
    },
  ],
  fold({ event, payload: reset, rows, wake }) {
    const state = editSensorState(rows, reset.sensor_id, event.event_id)
    state.cursor = reset.cursor
    state.state_version += 1
    wake(sensorSubject(reset.sensor_id))
    return applied
  },
})
