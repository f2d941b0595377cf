import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, type FoldContext, type Verdict } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import type { Row } from '../../model/table.ts'
import { scheduleState } from './schedule-state.table.ts'

type State = Row<typeof scheduleState>

/** The state of a schedule for changing, made if this is the first that is heard of it. */
export function editScheduleState(rows: Rows, scheduleId: string, eventId: string): State {
  const known = rows.hot(scheduleState).edit(scheduleId)
  if (known !== undefined) {
    if (eventId > known.row_version) known.row_version = eventId
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

/** Pausing and resuming: the latest by event id counts, in whatever order they arrive. */
export function switchSchedule(
  { event, at, payload, rows }: FoldContext<z.infer<typeof scheduleSwitch>>,
  status: State['status'],
): Verdict {
  const known = rows.hot(scheduleState).get(payload.schedule_id)
  // A later one was folded before it. It counts as heard all the same: its repetition under a newer id must not win.
  if (known?.status_event_id != null && known.status_event_id >= event.event_id) return applied
  const state = editScheduleState(rows, payload.schedule_id, event.event_id)
  state.status = status
  state.status_event_id = event.event_id
  state.status_changed_at = at
  return applied
}
