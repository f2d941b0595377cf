import { z } from 'zod'
import { toMs } from '../../lib/time.ts'
import { id, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate } from '../../model/event.ts'
import { skippedTicksId } from './deciding/tick-ids.ts'
import { addSkipped } from './moments/skipped-spans.ts'
import { changesRegime, editScheduleState, noteDecided, noteIfLate } from './regime.ts'
import { clockTurn, reasonFacts, scheduleTicks, skipCodes, turnSuffix } from './schedule-ticks.table.ts'

export const ScheduleTicksSkipped = defineEvent({
  type: 'ScheduleTicksSkipped',
  version: 1,
  doc: 'Consecutive ticks of a schedule were skipped for the same reason: one event for all of them.',
  payload: z.object({
    schedule_id: id,
    /** The first and the last of them. */
    first: timestamp,
    last: timestamp,
    tick_count: z.number().int().min(1).max(Number.MAX_SAFE_INTEGER),
    definition_version: id,
    clock_turn: clockTurn,
    /** Which cron they are ticks of: the schedule may get another. */
    cron_expressions: z.array(id).min(1).max(1_000).nullish(),
    timezone: id.nullish(),
    reason_code: z.enum(skipCodes),
    reason: z.string().min(1).max(4_096),
    reason_facts: reasonFacts.nullish(),
  }),
  idempotencyKey: (skipped) => `sched_skip:${skipped.schedule_id}:${skipped.first}:${skipped.last}${turnSuffix(skipped)}`,
  dedup: 'structure',
  reads: ({ schedule_id, first, last }) => [
    { table: scheduleTicks, key: [skippedTicksId(schedule_id, toMs(first), toMs(last))] },
  ],
  ordered: [changesRegime],
  fold({ event, at, payload: skipped, rows }) {
    const [first, last] = [toMs(skipped.first), toMs(skipped.last)]
    const tickId = skippedTicksId(skipped.schedule_id, first, last)
    const known = rows.cold(scheduleTicks).lookup(tickId)
    if (known?.tick_event_id != null && (known.clock_turn ?? 0) >= skipped.clock_turn) return duplicate
    noteDecided(rows, { scheduleId: skipped.schedule_id, tick: last, isTriggered: false, at, eventId: event.event_id })
    rows.cold(scheduleTicks).merge({
      tick_id: tickId,
      schedule_id: skipped.schedule_id,
      scheduled_for: first,
      scheduled_until: last,
      tick_count: skipped.tick_count,
      clock_turn: skipped.clock_turn,
      evaluated_at: at,
      definition_version: skipped.definition_version,
      cron_expressions: skipped.cron_expressions ?? null,
      timezone: skipped.timezone ?? null,
      status: 'skipped',
      cause: 'cron',
      reason_code: skipped.reason_code,
      reason: skipped.reason,
      reason_facts: skipped.reason_facts ?? null,
      tick_event_id: event.event_id,
      row_version: event.event_id,
    })
    const state = editScheduleState(rows, skipped.schedule_id, event.event_id)
    if (skipped.reason_code !== 'paused') noteIfLate(state, last, at)
    const { tick_count: left, cron_expressions, timezone } = skipped
    if (cron_expressions != null && timezone != null)
      addSkipped(state, { tick_id: tickId, first, last, left, moments: { cron_expressions, timezone } })
    if (last >= (state.last_scheduled_for ?? last)) {
      state.last_scheduled_for = last
      state.last_tick_id = tickId
      state.last_tick_event_id = event.event_id
      state.last_tick_status = 'skipped'
      state.last_tick_reason = skipped.reason
      state.last_run_key = null
    }
    return applied
  },
})
