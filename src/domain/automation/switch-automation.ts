import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, type FoldContext, type Verdict } from '../../model/event.ts'
import { changeRegime } from '../schedules/regime.ts'
import { scheduleDefinitions } from '../schedules/schedule-definitions.table.ts'
import { automationState, EVERYTHING } from './automation-state.table.ts'

/** Who pauses or resumes something, and why. */
export const switchedBy = { request_id: id, changed_by: id, reason: z.string().max(4_096).nullish() }

export const automationSwitch = z.object(switchedBy)

export function switchAutomation(
  { event, at, payload, rows }: FoldContext<z.infer<typeof automationSwitch>>,
  status: 'ACTIVE' | 'PAUSED',
): Verdict {
  const change = () =>
    rows.hot(automationState).insert({
      scope: EVERYTHING,
      status,
      status_changed_at: at,
      status_changed_by: payload.changed_by,
      status_reason: payload.reason ?? null,
      row_version: event.event_id,
    })
  const ids = [...rows.hot(scheduleDefinitions).all()].map(({ schedule_id }) => schedule_id)
  changeRegime(rows, { ids, at, eventId: event.event_id }, change)
  return applied
}
