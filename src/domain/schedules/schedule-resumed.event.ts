import { defineEvent } from '../../model/event.ts'
import { changesRegime } from './regime.ts'
import { scheduleSwitch, switchSchedule } from './switch-schedule.ts'

export const ScheduleResumed = defineEvent({
  type: 'ScheduleResumed',
  version: 1,
  doc: 'A schedule was resumed.',
  payload: scheduleSwitch,
  idempotencyKey: (change) => `schedule_resume:${change.schedule_id}:${change.request_id}`,
  dedup: 'key',
  ordered: [changesRegime],
  fold: (context) => switchSchedule(context, 'ACTIVE'),
})
