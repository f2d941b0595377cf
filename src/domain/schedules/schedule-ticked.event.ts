import { z } from 'zod'
import { tickStatuses } from '../../contract/automation-statuses.ts'
import { toMs } from '../../lib/time.ts'
import { fingerprint, id, runKey, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate } from '../../model/event.ts'
import { tickSubject } from '../subjects.ts'
import { takeOut } from './moments/skipped-spans.ts'
import { changesRegime, editScheduleState, noteAsked, noteDecided, noteIfLate } from './regime.ts'
import { clockTurn, reasonFacts, scheduleTicks, tickCauses, turnSuffix } from './schedule-ticks.table.ts'
import { countRun } from './scheduled-runs.ts'

const payload = z
  .object({
    tick_id: id,
    schedule_id: id,
    scheduled_for: timestamp,
    definition_version: id,
    clock_turn: clockTurn,
    asset_selection: z.array(id).min(1).max(10_000),
    partition_selection: z.array(id).max(100_000).nullish(),
    status: z.enum(tickStatuses),
    cause: z.enum(tickCauses).default('cron'),
    reason_code: id.nullish(),
    reason: z.string().max(4_096).nullish(),
    reason_facts: reasonFacts.nullish(),
    /** Who asked for a tick that the clock did not bring. */
    requested_by: id.nullish(),
    request_id: id.nullish(),
    /** The row of several ticks that were skipped together, of which this was one when it was asked for. */
    skipped_in: id.nullish(),
    /** Of a tick that was asked for: the cron that it is a tick of. */
    moments: z.object({ cron_expressions: z.array(id).min(1).max(1_000), timezone: id }).nullish(),
    run_key: runKey.nullish(),
    request_fingerprint: fingerprint.nullish(),
  })
  .superRefine((tick, context) => {
    const missing = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message })
    if (tick.status === 'triggered' && !tick.run_key) missing('run_key', 'a triggered tick names its run')
    if (tick.status === 'triggered' && !tick.request_fingerprint)
      missing('request_fingerprint', 'a triggered tick says what it asked for')
    if (tick.status !== 'triggered' && !tick.reason) missing('reason', `a ${tick.status} tick says why`)
    if (tick.cause === 'manual' && !tick.requested_by) missing('requested_by', 'a manual tick says who asked for it')
  })

export const ScheduleTicked = defineEvent({
  type: 'ScheduleTicked',
  version: 1,
  doc: 'A schedule was evaluated for one moment of its cron expression, with the definition as it was then.',
  payload,
  // A tick that was skipped may still be triggered: that is another fact about it.
  idempotencyKey: (tick) => `sched_tick:${tick.tick_id}:${tick.status}${turnSuffix(tick)}`,
  dedup: 'structure',
  reads: ({ tick_id, skipped_in }) =>
    [tick_id, ...(skipped_in == null ? [] : [skipped_in])].map((id) => ({ table: scheduleTicks, key: [id] })),
  ordered: [changesRegime],
  fold({ event, at, payload: tick, rows, wake }) {
    const scheduledFor = toMs(tick.scheduled_for)
    // The row alone is no sign that the tick is on record: its run may have been heard of first.
    const known = rows.cold(scheduleTicks).lookup(tick.tick_id)
    const isLater = tick.status === 'triggered' || (known?.clock_turn ?? 0) < tick.clock_turn
    if (known?.tick_event_id != null && (known.status === 'triggered' || !isLater)) return duplicate
    // A tick that somebody asked for says nothing of those before it, which a pause may not have recorded yet.
    const place = { scheduleId: tick.schedule_id, tick: scheduledFor, eventId: event.event_id }
    if (tick.requested_by == null) noteDecided(rows, { ...place, isTriggered: tick.status === 'triggered', at })
    else if (tick.cause === 'catch_up') noteAsked(rows, place)
    rows.cold(scheduleTicks).merge({
      tick_id: tick.tick_id,
      schedule_id: tick.schedule_id,
      scheduled_for: scheduledFor,
      scheduled_until: null,
      tick_count: 1,
      clock_turn: Math.max(tick.clock_turn, known?.clock_turn ?? 0),
      evaluated_at: at,
      definition_version: tick.definition_version,
      asset_selection: tick.asset_selection,
      partition_selection: tick.partition_selection ?? null,
      status: tick.status,
      cause: tick.cause,
      reason_code: tick.reason_code ?? null,
      reason: tick.reason ?? null,
      reason_facts: tick.reason_facts ?? null,
      requested_by: tick.requested_by ?? null,
      request_id: tick.request_id ?? null,
      run_key: tick.run_key ?? null,
      request_fingerprint: tick.request_fingerprint ?? null,
      tick_event_id: event.event_id,
      row_version: event.event_id,
    })
    wake(tickSubject(tick.tick_id))
    const state = editScheduleState(rows, tick.schedule_id, event.event_id)
    if (tick.requested_by != null && tick.cause === 'catch_up' && known?.tick_event_id == null) {
      const found = tick.skipped_in == null ? undefined : rows.cold(scheduleTicks).lookup(tick.skipped_in)
      const left = takeOut(state, { tick: scheduledFor, moments: tick.moments ?? undefined, found })
      if (left !== undefined) rows.cold(scheduleTicks).merge({ ...left, row_version: event.event_id })
    }
    if (tick.requested_by == null && tick.reason_code !== 'paused') noteIfLate(state, scheduledFor, at)
    if (tick.status === 'triggered' && tick.run_key != null) countRun(state, tick.run_key)
    // Ticks are caught up oldest first, and by hand in any order; the state only moves forward.
    if (tick.cause !== 'manual' && scheduledFor >= (state.last_scheduled_for ?? scheduledFor)) {
      state.last_scheduled_for = scheduledFor
      state.last_tick_id = tick.tick_id
      state.last_tick_event_id = event.event_id
      state.last_tick_status = tick.status
      state.last_tick_reason = tick.reason ?? null
      state.last_run_key = tick.run_key ?? null
    }
    return applied
  },
})
