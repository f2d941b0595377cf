import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent } from '../../model/event.ts'
import { editKnown } from '../typed-rows.ts'
import { changeRegime, changesRegime, raiseStateVersion } from './regime.ts'
import { scheduleDefinitions } from './schedule-definitions.table.ts'

export const ScheduleRemoved = defineEvent({
  type: 'ScheduleRemoved',
  version: 1,
  doc: 'A schedule was deleted, or the project no longer declares it. Its history stays.',
  payload: z.object({ schedule_id: id, request_id: id, removed_by: id }),
  idempotencyKey: (removal) => `schedule_removed:${removal.schedule_id}:${removal.request_id}`,
  dedup: 'key',
  ordered: [changesRegime],
  fold({ event, at, payload: { schedule_id }, rows }) {
    const known = rows.hot(scheduleDefinitions).get(schedule_id)
    if (known === undefined || known.removed_at !== null) return applied
    const change = () => {
      const row = editKnown(rows.hot(scheduleDefinitions), schedule_id)
      row.removed_at = at
      row.row_version = event.event_id
      raiseStateVersion(rows, schedule_id, event.event_id)
    }
    changeRegime(rows, { ids: [schedule_id], at, eventId: event.event_id }, change)
    return applied
  },
})
