import { z } from 'zod'
import { scheduleDefinition } from '../../contract/schedule.ts'
import { parseCron } from '../../cron/parse-cron.ts'
import { zoneNamed } from '../../cron/zone-clocks.ts'
import { isServoError, messageOf } from '../../lib/error.ts'
import { toMs } from '../../lib/time.ts'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent } from '../../model/event.ts'
import { changeRegime, changesRegime, raiseStateVersion } from './regime.ts'
import { scheduleDefinitions, scheduleOrigins } from './schedule-definitions.table.ts'

/** An event may have 1 MiB. Each tick and its run request carry this much, and the runs that are in the way. */
const MAX_REQUEST_BYTES = 900_000

/** Says what cannot be read of an expression or a zone where the schedule is declared, and not at three in the morning. */
const unreadable = (
  text: string,
  read: (text: string) => unknown,
): { message: string; params: { hint?: string } } | undefined => {
  try {
    read(text)
    return undefined
  } catch (error) {
    const hint = isServoError(error) ? error.hint : undefined
    return { message: messageOf(error), params: hint === undefined ? {} : { hint } }
  }
}

const payload = scheduleDefinition
  .omit({ name: true })
  .extend({
    schedule_id: id,
    schedule_name: id,
    origin: z.enum(scheduleOrigins).default('code'),
    /** The same for the same definition, so that declaring it again adds nothing. */
    definition_hash: id,
    /** Tells a return to an earlier definition from a repetition of the event that declared it. */
    request_id: id,
  })
  .superRefine((schedule, context) => {
    for (const [index, expression] of schedule.cron_expressions.entries()) {
      const wrong = unreadable(expression, parseCron)
      if (wrong !== undefined) context.addIssue({ code: 'custom', path: ['cron_expressions', index], ...wrong })
    }
    const wrong = unreadable(schedule.timezone, zoneNamed)
    if (wrong !== undefined) context.addIssue({ code: 'custom', path: ['timezone'], ...wrong })
    const { start_at, end_at } = schedule
    if (start_at != null && end_at != null && toMs(start_at) > toMs(end_at))
      context.addIssue({ code: 'custom', path: ['end_at'], message: 'a schedule cannot end before it starts' })
    const { asset_selection, partition_selection, labels } = schedule
    const bytes = Buffer.byteLength(JSON.stringify({ asset_selection, partition_selection, labels }))
    if (bytes > MAX_REQUEST_BYTES) {
      const most = `more than the ${MAX_REQUEST_BYTES} that a run request has room for`
      context.addIssue({
        code: 'custom',
        path: ['asset_selection'],
        message: `with partitions and labels it takes ${bytes} bytes, ${most}`,
      })
    }
    if (schedule.has_condition && schedule.origin === 'api')
      context.addIssue({ code: 'custom', path: ['has_condition'], message: 'a schedule without code has no condition' })
  })

export const ScheduleDefined = defineEvent({
  type: 'ScheduleDefined',
  version: 1,
  doc: 'A schedule was declared or changed.',
  payload,
  idempotencyKey: (schedule) => `schedule_def:${schedule.schedule_id}:${schedule.definition_hash}:${schedule.request_id}`,
  dedup: 'key',
  ordered: [changesRegime],
  fold({ event, at, payload: schedule, rows }) {
    const known = rows.hot(scheduleDefinitions).get(schedule.schedule_id)
    if (known?.definition_hash === schedule.definition_hash && known.removed_at === null) return applied
    const { schedule_id, schedule_name, origin, start_at, end_at, ...declared } = schedule
    const change = () => {
      raiseStateVersion(rows, schedule_id, event.event_id)
      rows.hot(scheduleDefinitions).insert({
        schedule_id,
        schedule_name,
        origin,
        description: declared.description ?? null,
        cron_expressions: declared.cron_expressions,
        timezone: declared.timezone,
        start_at: start_at == null ? null : toMs(start_at),
        end_at: end_at == null ? null : toMs(end_at),
        asset_selection: declared.asset_selection,
        partition_selection: declared.partition_selection ?? null,
        partition_offset: declared.partition_offset,
        catchup_window_minutes: declared.catchup_window_minutes,
        max_catchup_ticks: declared.max_catchup_ticks ?? null,
        catch_up_on_resume: declared.catch_up_on_resume,
        overlap: declared.overlap ?? null,
        labels: declared.labels,
        priority: declared.priority,
        pause_after: declared.pause_after ?? null,
        enabled: declared.enabled,
        has_condition: declared.has_condition,
        condition_timeout_ms: declared.condition_timeout_ms,
        file: declared.file ?? null,
        line: declared.line ?? null,
        definition_hash: declared.definition_hash,
        renamed_from:
          known !== undefined && known.schedule_name !== schedule_name ? known.schedule_name : (known?.renamed_from ?? null),
        created_at: known?.created_at ?? at,
        defined_at: at,
        removed_at: null,
        row_version: event.event_id,
      })
    }
    changeRegime(rows, { ids: [schedule_id], at, eventId: event.event_id }, change)
    return applied
  },
})
