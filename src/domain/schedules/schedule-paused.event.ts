import { defineEvent } from '../../model/event.ts'
import { scheduleSwitch, switchSchedule } from './edit-schedule-state.ts'

export const SchedulePaused = defineEvent({
  type: 'SchedulePaused',
  version: 1,
  doc: 'A schedule was paused.',
  payload: scheduleSwitch,
  idempotencyKey: (change) => `schedule_pause:${change.schedule_id}:${change.request_id}`,
  dedup: 'key',
  fold: (context) => switchSchedule(context, 'PAUSED'),
})
