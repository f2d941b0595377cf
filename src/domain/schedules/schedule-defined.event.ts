import { z } from 'zod'
import { count, id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate } from '../../model/event.ts'
import { scheduleDefinitions } from './schedule-definitions.table.ts'

export const ScheduleDefined = defineEvent({
  type: 'ScheduleDefined',
  version: 1,
  doc: 'A schedule was declared or changed.',
  payload: z.object({
    schedule_id: id,
    schedule_name: id,
    cron_expressions: z.array(id).min(1).max(100),
    timezone: id.default('UTC'),
    catchup_window_minutes: count.default(1_440),
    max_catchup_ticks: count.default(3),
    catch_up_on_resume: z.boolean().default(false),
    asset_selection: z.array(id).min(1).max(10_000),
    partition_selection: z.array(id).max(100_000).nullish(),
    enabled: z.boolean().default(true),
    /** Changes whenever the definition does, so that declaring the same twice adds nothing. */
    definition_hash: id,
  }),
  idempotencyKey: (schedule) => `schedule_def:${schedule.schedule_id}:${schedule.definition_hash}`,
  dedup: 'structure',
  fold({ event, at, payload: schedule, rows }) {
    const known = rows.hot(scheduleDefinitions).get(schedule.schedule_id)
    const createdAt = Math.min(known?.created_at ?? at, at)
    if (known !== undefined && known.row_version >= event.event_id) {
      if (createdAt === known.created_at) return duplicate
      const row = rows.hot(scheduleDefinitions).edit(schedule.schedule_id)
      if (row !== undefined) row.created_at = createdAt
      return applied
    }
    rows.hot(scheduleDefinitions).insert({
      schedule_id: schedule.schedule_id,
      schedule_name: schedule.schedule_name,
      cron_expressions: schedule.cron_expressions,
      timezone: schedule.timezone,
      catchup_window_minutes: schedule.catchup_window_minutes,
      max_catchup_ticks: schedule.max_catchup_ticks,
      catch_up_on_resume: schedule.catch_up_on_resume,
      asset_selection: schedule.asset_selection,
      partition_selection: schedule.partition_selection ?? null,
      enabled: schedule.enabled,
      created_at: createdAt,
      row_version: event.event_id,
    })
    return applied
  },
})
