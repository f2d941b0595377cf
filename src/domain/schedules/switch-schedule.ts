import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, type FoldContext, type Verdict } from '../../model/event.ts'
import { switchedBy } from '../automation/switch-automation.ts'
import { changeRegime, raiseStateVersion } from './regime.ts'
import type { ScheduleStateRow } from './schedule-state.table.ts'

export const scheduleSwitch = z.object({ schedule_id: id, ...switchedBy })

export function switchSchedule(
  { event, at, payload, rows }: FoldContext<z.infer<typeof scheduleSwitch>>,
  status: ScheduleStateRow['status'],
): Verdict {
  const change = () => {
    const state = raiseStateVersion(rows, payload.schedule_id, event.event_id)
    state.status = status
    state.status_changed_at = at
    state.status_changed_by = payload.changed_by
    state.status_reason = payload.reason ?? null
    if (status === 'ACTIVE') state.counted_runs = []
  }
  changeRegime(rows, { ids: [payload.schedule_id], at, eventId: event.event_id }, change)
  return applied
}
