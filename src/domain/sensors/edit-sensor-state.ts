import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, type FoldContext, type Verdict } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { switchedBy } from '../automation/switch-automation.ts'
import { raiseVersion } from '../typed-rows.ts'
import { errorBackoffMs } from './backoff.ts'
import { type SensorStateRow, sensorState } from './sensor-state.table.ts'

/** The state of a sensor for changing, made if this is the first that is heard of it. */
export function editSensorState(rows: Rows, sensorId: string, eventId: string): SensorStateRow {
  const known = rows.hot(sensorState).edit(sensorId)
  if (known !== undefined) {
    raiseVersion(known, eventId)
    return known
  }
  return rows.hot(sensorState).insert({
    sensor_id: sensorId,
    status: 'ACTIVE',
    status_changed_at: null,
    status_changed_by: null,
    status_reason: null,
    cursor: null,
    cursor_reset_at: null,
    cursor_reset_by: null,
    cursor_reset_reason: null,
    state_version: 0,
    last_evaluation_at: null,
    last_eval_id: null,
    empty_polls: 0,
    empty_since: null,
    consecutive_errors: 0,
    failing_since: null,
    last_error: null,
    last_error_at: null,
    backoff_until: null,
    dead_letters: 0,
    happenings_waiting: 0,
    happenings_dropped: 0,
    happenings_dropped_at: null,
    row_version: eventId,
  })
}

export const sensorSwitch = z.object({ sensor_id: id, ...switchedBy })

export function switchSensor(
  { event, at, payload, rows }: FoldContext<z.infer<typeof sensorSwitch>>,
  status: 'ACTIVE' | 'PAUSED',
): Verdict {
  const state = editSensorState(rows, payload.sensor_id, event.event_id)
  // Whoever resumes a sensor wants to see whether it works now, and not when the errors of before allow.
  if (status === 'ACTIVE') forgetErrors(state)
  state.status = status
  state.status_changed_at = at
  state.status_changed_by = payload.changed_by
  state.status_reason = payload.reason ?? null
  return applied
}

/** Notes when the sensor was last evaluated. What lies in the future was noted by a clock that was ahead, and counts no more. */
export function noteEvaluated(state: SensorStateRow, evalId: string, { when, at }: { when: number; at: number }): void {
  const known = state.last_evaluation_at
  state.last_evaluation_at = known === null || known > at ? when : Math.max(known, when)
  state.last_eval_id = evalId
}

export function noteError(state: SensorStateRow, error: string, at: number): void {
  state.consecutive_errors += 1
  state.failing_since ??= at
  state.last_error = error
  state.last_error_at = at
  state.backoff_until = at + errorBackoffMs(state.consecutive_errors)
  if (state.status === 'ACTIVE') state.status = 'ERROR'
}

/** Its code worked, so that it need not rest: what comes next may well be accepted. */
export function noteRefusal(state: SensorStateRow, error: string, at: number): void {
  forgetErrors(state)
  noteError(state, error, at)
  state.backoff_until = null
}

export function forgetErrors(state: SensorStateRow): void {
  state.consecutive_errors = 0
  state.failing_since = null
  state.last_error = null
  state.last_error_at = null
  state.backoff_until = null
  if (state.status === 'ERROR') state.status = 'ACTIVE'
}

/** Makes every poll stale that began before. */
export function nextVersion(state: SensorStateRow): void {
  state.state_version += 1
  state.empty_polls = 0
  state.empty_since = null
}
