import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent } from '../../model/event.ts'
import { switchedBy } from '../automation/switch-automation.ts'
import { sensorSubject } from '../subjects.ts'
import { editSensorState, forgetErrors, nextVersion } from './edit-sensor-state.ts'
import { MAX_CURSOR } from './limits.ts'
import { changesSensor } from './order.ts'

export const SensorCursorReset = defineEvent({
  type: 'SensorCursorReset',
  version: 1,
  doc: 'A user set the cursor of a sensor. Polls that are under way become stale.',
  payload: z.object({ sensor_id: id, ...switchedBy, cursor: z.string().max(MAX_CURSOR).nullable() }),
  idempotencyKey: (reset) => `sensor_reset:${reset.sensor_id}:${reset.request_id}`,
  dedup: 'key',
  ordered: [changesSensor],
  fold({ event, at, payload: reset, rows, wake }) {
    const state = editSensorState(rows, reset.sensor_id, event.event_id)
    nextVersion(state)
    // The errors were of the cursor of before.
    forgetErrors(state)
    state.cursor = reset.cursor
    state.cursor_reset_at = at
    state.cursor_reset_by = reset.changed_by
    state.cursor_reset_reason = reset.reason ?? null
    wake(sensorSubject(reset.sensor_id))
    return applied
  },
})
