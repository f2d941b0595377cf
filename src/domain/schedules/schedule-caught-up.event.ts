import { z } from 'zod'
import { toMs } from '../../lib/time.ts'
import { id, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate } from '../../model/event.ts'
import { changesRegime, editScheduleState, forgetAsked } from './regime.ts'
import { scheduleState } from './schedule-state.table.ts'

export const ScheduleCaughtUp = defineEvent({
  type: 'ScheduleCaughtUp',
  version: 1,
  doc: 'Every tick that was due before a schedule was changed, paused or resumed is on record.',
  payload: z.object({ schedule_id: id, until: timestamp }),
  idempotencyKey: ({ schedule_id, until }) => `sched_caught_up:${schedule_id}:${until}`,
  dedup: 'structure',
  ordered: [changesRegime],
  fold({ event, payload: { schedule_id, until }, rows }) {
    const known = rows.hot(scheduleState).get(schedule_id)
    const left = known === undefined ? [] : known.undecided.filter((regime) => regime.until > toMs(until))
    if (known === undefined || left.length === known.undecided.length) return duplicate
    const state = editScheduleState(rows, schedule_id, event.event_id)
    state.undecided = left
    forgetAsked(state)
    return applied
  },
})
