import { z } from 'zod'
import { toMs } from '../../lib/time.ts'
import { id, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate } from '../../model/event.ts'
import { changesRegime, editScheduleState, forgetAsked, setDecided } from './regime.ts'
import { scheduleState } from './schedule-state.table.ts'

export const ScheduleCaughtUp = defineEvent({
  type: 'ScheduleCaughtUp',
  version: 1,
  doc: 'Every tick that was due before a schedule was changed, paused or resumed is on record, or a clock that was ahead was set back.',
  payload: z.object({
    schedule_id: id,
    until: timestamp,
    /** How far a clock that was ahead has decided ticks, if it has: time goes on from `until` instead. */
    instead_of: timestamp.nullish(),
  }),
  idempotencyKey: ({ schedule_id, until, instead_of }) =>
    `sched_caught_up:${schedule_id}:${until}${instead_of == null ? '' : `:${instead_of}`}`,
  dedup: 'structure',
  ordered: [changesRegime],
  fold({ event, payload, rows }) {
    const { schedule_id } = payload
    const until = toMs(payload.until)
    const known = rows.hot(scheduleState).get(schedule_id)
    const left = known === undefined ? [] : known.undecided.filter((regime) => regime.until > until)
    // A repetition finds that it is so no more.
    const isAhead = payload.instead_of != null && known?.decided_until === toMs(payload.instead_of)
    if (known === undefined || (left.length === known.undecided.length && !isAhead)) return duplicate
    const state = editScheduleState(rows, schedule_id, event.event_id)
    state.undecided = left
    if (isAhead) setDecided(state, until)
    forgetAsked(state)
    return applied
  },
})
