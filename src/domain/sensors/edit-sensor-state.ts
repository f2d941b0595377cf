import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, type FoldContext, type Verdict } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import type { Row } from '../../model/table.ts'
import { switchStatus } from '../switch-status.ts'
import { raiseVersion } from '../typed-rows.ts'
import { sensorState } from './sensor-state.table.ts'

export type SensorState = Row<typeof sensorState>

/** The state of a sensor for editing, inserted if this is its first event. */
export function editSensorState(rows: Rows, sensorId: string, eventId: string): SensorState {
  const known = rows.hot(sensorState).edit(sensorId)
  if (known !== undefined) {
    raiseVersion(known, eventId)
    return known
  }
  return rows.hot(sensorState).insert({
    sensor_id: sensorId,
    status: 'ACTIVE',
    status_event_id: null,
    cursor: null,
    state_version: 0,
    last_evaluation_at: null,
    last_eval_id: null,
    last_eval_event_id: null,
    consecutive_errors: 0,
    last_error: null,
    row_version: eventId,
  })
}

export const sensorSwitch = z.object({ sensor_id: id, request_id: id, changed_by: id })

export function switchSensor(
  { event, payload, rows }: FoldContext<z.infer<typeof sensorSwitch>>,
  status: SensorState['status'],
): Verdict {
  switchStatus(
    rows.hot(sensorState).get(payload.sensor_id),
    () => editSensorState(rows, payload.sensor_id, event.event_id),
    status,
    event.event_id,
  )
  return applied
}
