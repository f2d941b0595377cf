import type {
  AutomationStatus,
  ScheduleDetail,
  ScheduleListQuery,
  SchedulePage,
  TickPage,
  TickQuery,
} from '../../api/automation/schedule-contract.ts'
import { wireRow } from '../../api/wire-row.ts'
import { automationState, EVERYTHING } from '../../domain/automation/automation-state.table.ts'
import { pausedText } from '../../domain/schedules/due.ts'
import { cadenceIfAny, pauseOf } from '../../domain/schedules/regime.ts'
import { type ScheduleRow, scheduleDefinitions } from '../../domain/schedules/schedule-definitions.table.ts'
import { scheduleState } from '../../domain/schedules/schedule-state.table.ts'
import { scheduleTicks } from '../../domain/schedules/schedule-ticks.table.ts'
import { ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import { quoteText } from '../../lib/sql/sql-text.ts'
import { toIso, toMs } from '../../lib/time.ts'
import type { Row } from '../../model/table.ts'
import type { Knowledge } from './knowledge.ts'
import { badCursor, pageOf } from './page.ts'
import { publishedRows } from './published-rows.ts'

type TickRow = Row<typeof scheduleTicks>

/** How many of its next ticks a schedule shows. */
const SHOWN_TICKS = 5

/** Schedules as they are now, and their ticks. */
export class ScheduleReader {
  readonly #known: Knowledge

  constructor(known: Knowledge) {
    this.#known = known
  }

  async list(query: ScheduleListQuery): Promise<SchedulePage> {
    const rows = [...this.#known.rows().hot(scheduleDefinitions).all()].filter((row) => row.removed_at === null)
    const byName = new Map(rows.map((row) => [`${row.schedule_name}\n${row.schedule_id}`, row]))
    const { names, next_cursor } = pageOf([...byName.keys()].sort(), query)
    const schedules = names.flatMap((name) => {
      const row = byName.get(name)
      return row === undefined ? [] : [this.detailOf(row)]
    })
    return { schedules, next_cursor }
  }

  async get(idOrName: string): Promise<ScheduleDetail> {
    return this.detailOf(this.find(idOrName))
  }

  /** The schedule of this id or name, which must exist. Of several that had the name, the one that has it counts. */
  find(idOrName: string): Readonly<ScheduleRow> {
    const all = this.#known.rows().hot(scheduleDefinitions)
    const byId = all.get(idOrName)
    if (byId !== undefined) return byId
    const named = [...all.all()].filter((row) => row.schedule_name === idOrName)
    const found = named.find((row) => row.removed_at === null) ?? named.sort((a, b) => b.defined_at - a.defined_at)[0]
    if (found !== undefined) return found
    const meant = nearest(
      idOrName,
      [...all.all()].map((row) => row.schedule_name),
    )
    throw new ServoError('not_found', 'no_such_schedule', `there is no schedule ${JSON.stringify(idOrName.slice(0, 255))}`, {
      hint: meant === undefined ? 'servo schedules list shows those there are.' : `Did you mean ${meant}?`,
    })
  }

  detailOf(definition: Readonly<ScheduleRow>): ScheduleDetail {
    const rows = this.#known.rows()
    const state = rows.hot(scheduleState).get(definition.schedule_id)
    const pause = pauseOf(rows, state)
    const status =
      definition.removed_at !== null ? 'removed' : !definition.enabled ? 'disabled' : pause !== null ? 'paused' : 'active'
    const { undecided: _, ...shown } = state === undefined ? { undecided: undefined } : wireRow(scheduleState, state)
    return {
      definition: wireRow(scheduleDefinitions, definition),
      state: state === undefined ? null : (shown as ScheduleDetail['state']),
      status,
      status_reason: status === 'paused' && pause !== null ? pausedText(pause) : null,
      next_ticks: status === 'active' ? this.#nextTicks(definition) : [],
    }
  }

  #nextTicks(definition: Readonly<ScheduleRow>): string[] {
    const cadence = cadenceIfAny(definition)
    const found: string[] = []
    for (let tick = cadence?.after(this.#known.now()); tick !== undefined; tick = cadence?.after(tick)) {
      if (found.push(toIso(tick)) === SHOWN_TICKS) break
    }
    return found
  }

  async ticks(idOrName: string, query: TickQuery): Promise<TickPage> {
    const { schedule_id } = this.find(idOrName)
    const { limit, cursor, status, since, until } = query
    const after = cursor === undefined ? undefined : tickPlace(cursor)
    const isAsked = (row: Readonly<TickRow>): boolean =>
      row.schedule_id === schedule_id &&
      (status === undefined || row.status === status) &&
      (since === undefined || (row.scheduled_for ?? 0) >= toMs(since)) &&
      (until === undefined || (row.scheduled_for ?? 0) < toMs(until)) &&
      (after === undefined || comesAfter(after, row))
    const cold = this.#known.coldRows(scheduleTicks)
    const recent = [...cold.recent()].filter((row) => row.schedule_id === schedule_id)
    const conditions = [
      `schedule_id = ${quoteText(schedule_id)}`,
      since !== undefined && `scheduled_for >= ${quoteText(since)}::timestamptz`,
      until !== undefined && `scheduled_for < ${quoteText(until)}::timestamptz`,
      after !== undefined && `scheduled_for <= ${quoteText(toIso(after.at))}::timestamptz`,
    ].filter((one) => one !== false)
    // A row that changed since it was published is looked at again, and may drop out: so many more are asked for.
    const most = limit + 1 + recent.length
    const rest = `where ${conditions.join(' and ')} ${status === undefined ? '' : `and status = ${quoteText(status)}`} order by scheduled_for desc, tick_id desc limit ${most}`
    const published = await publishedRows(this.#known.sql, scheduleTicks, rest, ['tick_id'])
    const ids = new Set([...recent, ...published].map((row) => row.tick_id))
    const found = (await cold.lookup([...ids].map((tickId) => [tickId]))).filter((row) => row !== undefined)
    const sorted = found.filter(isAsked).sort((a, b) => (isBefore(a, b) ? -1 : 1))
    const page = sorted.slice(0, limit)
    const last = page.at(-1)
    return {
      ticks: page.map((row) => wireRow(scheduleTicks, row)),
      next_cursor: last === undefined || sorted.length <= limit ? null : cursorOf(last),
    }
  }

  async automation(): Promise<AutomationStatus> {
    const row = this.#known.rows().hot(automationState).get(EVERYTHING)
    return {
      status: row?.status === 'PAUSED' ? 'paused' : 'active',
      changed_by: row?.status_changed_by ?? null,
      changed_at: row?.status_changed_at == null ? null : toIso(row.status_changed_at),
      reason: row?.status_reason ?? null,
    }
  }
}

interface TickPlace {
  readonly at: number
  readonly id: string
}

const placeOf = (row: Readonly<TickRow>): TickPlace => ({ at: row.scheduled_for ?? 0, id: row.tick_id })
const isBefore = (a: Readonly<TickRow>, b: Readonly<TickRow>): boolean => comesAfter(placeOf(a), b)
/** True if a row comes later in a list that has the newest first. */
const comesAfter = (place: TickPlace, row: Readonly<TickRow>): boolean => {
  const other = placeOf(row)
  return other.at < place.at || (other.at === place.at && other.id < place.id)
}
const cursorOf = (row: Readonly<TickRow>): string => Buffer.from(JSON.stringify(placeOf(row))).toString('base64url')

function tickPlace(cursor: string): TickPlace {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (typeof place === 'object' && place !== null && 'at' in place && 'id' in place) {
      const { at, id } = place
      if (typeof at === 'number' && Number.isSafeInteger(at) && typeof id === 'string') return { at, id }
    }
  } catch {}
  throw badCursor()
}
