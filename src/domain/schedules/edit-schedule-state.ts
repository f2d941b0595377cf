import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, type FoldContext, type Verdict } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import type { Row } from '../../model/table.ts'
import { switchStatus } from '../switch-status.ts'
import { raiseVersion } from '../typed-rows.ts'
import { scheduleState } from './schedule-state.table.ts'

type ScheduleState = Row<typeof scheduleState>

/** The state of a schedule for editing, inserted if this is its first event. */
export function editScheduleState(rows: Rows, scheduleId: string, eventId: string): ScheduleState {
  const known = rows.hot(scheduleState).edit(scheduleId)
  if (known !== undefined) {
    raiseVersion(known, eventId)
    return known
  }
  return rows.hot(scheduleState).insert({
    schedule_id: scheduleId,
    status: 'ACTIVE',
    status_event_id: null,
    status_changed_at: null,
    last_scheduled_for: null,
    last_tick_id: null,
    last_tick_event_id: null,
    last_run_key: null,
    row_version: eventId,
  })
}

export const scheduleSwitch = z.object({ schedule_id: id, request_id: id, changed_by: id })

export function switchSchedule(
  { event, at, payload, rows }: FoldContext<z.infer<typeof scheduleSwitch>>,
  status: ScheduleState['status'],
): Verdict {
  const state = switchStatus(
    rows.hot(scheduleState).get(payload.schedule_id),
    () => editScheduleState(rows, payload.schedule_id, event.event_id),
    status,
    event.event_id,
  )
  if (state !== undefined) state.status_changed_at = at
  return applied
}
