import type { ScheduleDefinition } from '../../contract/schedule.ts'
import { sha256 } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import { keptIds } from '../automation/kept-ids.ts'
import { ScheduleDefined } from './schedule-defined.event.ts'
import type { ScheduleRow, scheduleOrigins } from './schedule-definitions.table.ts'
import { ScheduleRemoved } from './schedule-removed.event.ts'

export interface SchedulesToRecord {
  /** Every schedule that the project declares. */
  readonly declared: readonly ScheduleDefinition[]
  /** Every row of `schedule_definitions`, those of removed schedules too: their ids come back with their names. */
  readonly known: Iterable<Readonly<ScheduleRow>>
  readonly mintId: () => string
}

/** What changed since the schedules of the project were last recorded. Schedules that were made over the API stay as they are. */
export function declaredSchedules({ declared, known, mintId }: SchedulesToRecord): NewEvent[] {
  const rows = [...known].filter((row) => row.origin === 'code')
  const ids = keptIds(
    declared,
    rows.map((row) => ({ ...row, id: row.schedule_id, name: row.schedule_name })),
  )
  const kept = new Set(ids.values())
  const events = declared.flatMap((schedule) => {
    const schedule_id = ids.get(schedule.name) ?? mintId()
    const row = rows.find((one) => one.schedule_id === schedule_id)
    const event = scheduleDefined(schedule, schedule_id, 'code', mintId())
    const isSame = row?.removed_at === null && row.definition_hash === definitionHash(schedule)
    return isSame ? [] : [event]
  })
  const gone = rows.filter((row) => row.removed_at === null && !kept.has(row.schedule_id))
  const removed = gone.map(({ schedule_id }) =>
    newEvent(ScheduleRemoved, { schedule_id, request_id: mintId(), removed_by: 'code' }),
  )
  return [...events, ...removed]
}

/** The declaration of one schedule. */
export function scheduleDefined(
  { name, ...definition }: ScheduleDefinition,
  schedule_id: string,
  origin: (typeof scheduleOrigins)[number],
  request_id: string,
): NewEvent {
  const definition_hash = definitionHash({ name, ...definition })
  return newEvent(ScheduleDefined, { ...definition, schedule_id, schedule_name: name, origin, definition_hash, request_id })
}

/** The same for the same definition, wherever in the code it stands. */
function definitionHash({ file: _, line: __, renamed_from: ___, ...definition }: ScheduleDefinition): string {
  return sha256(canonicalJson(definition))
}
