import { defineEvent } from '../../model/event.ts'
import { changesRegime } from './regime.ts'
import { scheduleSwitch, switchSchedule } from './switch-schedule.ts'

export const SchedulePaused = defineEvent({
  type: 'SchedulePaused',
  version: 1,
  doc: 'A schedule was paused.',
  payload: scheduleSwitch,
  idempotencyKey: (change) => `schedule_pause:${change.schedule_id}:${change.request_id}`,
  dedup: 'key',
  ordered: [changesRegime],
  fold: (context) => switchSchedule(context, 'PAUSED'),
})
