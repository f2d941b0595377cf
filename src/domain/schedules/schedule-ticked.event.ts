import { z } from 'zod'
import { toMs } from '../../lib/time.ts'
import { fingerprint, id, runKey, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate } from '../../model/event.ts'
import { editScheduleState } from './edit-schedule-state.ts'
import { scheduleTicks, tickStatuses } from './schedule-ticks.table.ts'

const payload = z
  .object({
    tick_id: id,
    schedule_id: id,
    scheduled_for: timestamp,
    /** A manual trigger is a tick too, but does not move the cadence. */
    manual: z.boolean().default(false),
    definition_version: id,
    asset_selection: z.array(id).min(1).max(10_000),
    partition_selection: z.array(id).max(100_000).nullish(),
    status: z.enum(tickStatuses),
    reason: z.string().max(4_096).nullish(),
    run_key: runKey.nullish(),
    request_fingerprint: fingerprint.nullish(),
  })
  .superRefine((tick, context) => {
    if (tick.status === 'triggered' && !tick.run_key)
      context.addIssue({ code: 'custom', path: ['run_key'], message: 'a triggered tick names its run' })
    if (tick.status !== 'triggered' && !tick.reason)
      context.addIssue({ code: 'custom', path: ['reason'], message: `a ${tick.status} tick says why` })
  })

export const ScheduleTicked = defineEvent({
  type: 'ScheduleTicked',
  version: 1,
  doc: 'A schedule was evaluated for one moment of its cron expression, with the definition as it was then.',
  payload,
  idempotencyKey: (tick) => `sched_tick:${tick.tick_id}`,
  dedup: 'structure',
  reads: (tick) => [{ table: scheduleTicks, key: [tick.tick_id] }],
  fold({ event, at, payload: tick, rows }) {
    // Two controllers may record the same tick. A row alone does not prove that: the request of its run may have been folded first.
    if (rows.cold(scheduleTicks).lookup(tick.tick_id)?.tick_event_id != null) return duplicate
    const scheduledFor = toMs(tick.scheduled_for)
    rows.cold(scheduleTicks).merge({
      tick_id: tick.tick_id,
      schedule_id: tick.schedule_id,
      scheduled_for: scheduledFor,
      evaluated_at: at,
      definition_version: tick.definition_version,
      asset_selection: tick.asset_selection,
      partition_selection: tick.partition_selection ?? null,
      status: tick.status,
      reason: tick.reason ?? null,
      run_key: tick.run_key ?? null,
      request_fingerprint: tick.request_fingerprint ?? null,
      tick_event_id: event.event_id,
      row_version: event.event_id,
    })
    if (tick.manual) return applied
    // Ticks arrive out of order after downtime; the state only moves forward.
    const state = editScheduleState(rows, tick.schedule_id, event.event_id)
    const newer = state.last_scheduled_for === null || scheduledFor > state.last_scheduled_for
    const sameTickRecordedEarlier =
      scheduledFor === state.last_scheduled_for && event.event_id < (state.last_tick_event_id ?? '')
    if (newer || sameTickRecordedEarlier) {
      state.last_scheduled_for = scheduledFor
      state.last_tick_id = tick.tick_id
      state.last_tick_event_id = event.event_id
      state.last_run_key = tick.run_key ?? null
    }
    return applied
  },
})
