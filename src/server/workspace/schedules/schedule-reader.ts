import type {
  AllTicksPage,
  AutomationStatus,
  LastRun,
  ScheduleDetail,
  ScheduleListQuery,
  SchedulePage,
  TickPage,
  TickQuery,
} from '../../../api/automation/schedule-contract.ts'
import { wireRow } from '../../../api/wire-row.ts'
import { automationState, EVERYTHING } from '../../../domain/automation/automation-state.table.ts'
import { pausedText } from '../../../domain/schedules/deciding/due.ts'
import { catchupLimit } from '../../../domain/schedules/deciding/work-of-tick.ts'
import { cadenceIfAny } from '../../../domain/schedules/moments/cadence-if-any.ts'
import { pauseOf } from '../../../domain/schedules/regime.ts'
import { type ScheduleRow, scheduleDefinitions } from '../../../domain/schedules/schedule-definitions.table.ts'
import { type Pause, type ScheduleStateRow, scheduleState } from '../../../domain/schedules/schedule-state.table.ts'
import { scheduleTicks } from '../../../domain/schedules/schedule-ticks.table.ts'
import { waitingText } from '../../../domain/why/words-automation.ts'
import { assert } from '../../../lib/assert.ts'
import { ServoError } from '../../../lib/error.ts'
import { nearest } from '../../../lib/nearest.ts'
import { quoteText } from '../../../lib/sql/sql-text.ts'
import { toIso } from '../../../lib/time.ts'
import type { Knowledge } from '../knowledge.ts'
import { newestPage } from '../newest-page.ts'
import { pageOf } from '../page.ts'
import { graphAt } from './asked-ticks.ts'
import { lastRunsOf } from './runs-of-schedules.ts'

/** How many of its next ticks a schedule shows. */
const SHOWN_TICKS = 5

/** Schedules as they are now, and their ticks. */
export class ScheduleReader {
  readonly #known: Knowledge
  readonly #isOn: boolean
  readonly #outage: () => string | undefined

  constructor(known: Knowledge, isOn: boolean, outage: () => string | undefined) {
    this.#outage = outage
    this.#known = known
    this.#isOn = isOn
  }

  async list(query: ScheduleListQuery): Promise<SchedulePage> {
    const all = [...this.#known.rows().hot(scheduleDefinitions).all()].filter((row) => row.removed_at === null)
    const { status } = query
    const rows = status === undefined ? all : all.filter((row) => this.#detailOf(row, null).status === status)
    const byName = new Map(rows.map((row) => [`${row.schedule_name}\n${row.schedule_id}`, row]))
    const { names, next_cursor } = pageOf([...byName.keys()].sort(), query)
    const page = names.flatMap((name) => byName.get(name) ?? [])
    return { schedules: await this.#detailsOf(page), next_cursor }
  }

  async get(idOrName: string): Promise<ScheduleDetail> {
    const row = this.find(idOrName)
    const [detail] = await this.#detailsOf([row])
    assert(detail !== undefined, 'each schedule has its detail')
    return detail
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
    throw new ServoError('not_found', 'no_such_schedule', `schedule ${JSON.stringify(idOrName.slice(0, 255))} not found`, {
      hint:
        meant === undefined
          ? '`servo schedules list` lists all schedules. Those that the project declares are on record once servo dev has started.'
          : `Did you mean ${meant}?`,
    })
  }

  async #detailsOf(definitions: readonly Readonly<ScheduleRow>[]): Promise<ScheduleDetail[]> {
    const states = this.#known.rows().hot(scheduleState)
    const known = definitions.flatMap(({ schedule_id }) => states.get(schedule_id) ?? [])
    const lastRuns = await lastRunsOf(this.#known, known)
    return definitions.map((definition) => this.#detailOf(definition, lastRuns.get(definition.schedule_id) ?? null))
  }

  #detailOf(definition: Readonly<ScheduleRow>, last_run: LastRun | null): ScheduleDetail {
    const rows = this.#known.rows()
    const state = rows.hot(scheduleState).get(definition.schedule_id)
    const pause = pauseOf(rows, state)
    const next_ticks = this.#nextTicks(definition)
    const status = statusOf(definition, pause, next_ticks.length > 0)
    return {
      definition: wireRow(scheduleDefinitions, definition),
      state: state === undefined ? null : wireState(state),
      status,
      status_reason:
        status === 'paused' && pause !== null ? pausedText(pause) : status === 'active' ? this.#waitsFor(definition) : null,
      next_ticks: status === 'active' ? next_ticks : [],
      catchup_limit: catchupLimit(definition, graphAt(this.#known, this.#known.now())),
      last_run,
    }
  }

  /** Why its ticks wait, if its condition cannot be evaluated. */
  #waitsFor({ has_condition }: Readonly<ScheduleRow>): string | null {
    const outage = has_condition ? this.#outage() : undefined
    return outage === undefined ? null : waitingText(outage)
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
    const { rows, next_cursor } = await this.#ticks(this.find(idOrName).schedule_id, query)
    return { ticks: rows.map((row) => wireRow(scheduleTicks, row)), next_cursor }
  }

  async allTicks(query: TickQuery): Promise<AllTicksPage> {
    const { rows, next_cursor } = await this.#ticks(undefined, query)
    const definitions = this.#known.rows().hot(scheduleDefinitions)
    const ticks = rows.map((row) => ({
      ...wireRow(scheduleTicks, row),
      schedule_name: definitions.get(row.schedule_id ?? '')?.schedule_name ?? null,
    }))
    return { ticks, next_cursor }
  }

  #ticks(scheduleId: string | undefined, { status, ...page }: TickQuery) {
    return newestPage(
      this.#known,
      {
        table: scheduleTicks,
        at: 'scheduled_for',
        id: 'tick_id',
        placeOf: (row) => ({ at: row.scheduled_for, id: row.tick_id }),
        keyOf: (id) => [id],
        // Ticks that were skipped together are asked for if any of them is.
        end: { sql: 'coalesce(scheduled_until, scheduled_for)', of: (row) => row.scheduled_until ?? row.scheduled_for },
        owns: (row) => scheduleId === undefined || row.schedule_id === scheduleId,
        // Of ticks that were skipped together, all may have been triggered since.
        has: (row) => row.tick_count !== 0 && (status === undefined || row.status === status),
        where: [
          ...(scheduleId === undefined ? [] : [`schedule_id = ${quoteText(scheduleId)}`]),
          'tick_count is distinct from 0',
          ...(status === undefined ? [] : [`status = ${quoteText(status)}`]),
        ],
      },
      page,
    )
  }

  async automation(): Promise<AutomationStatus> {
    const row = this.#known.rows().hot(automationState).get(EVERYTHING)
    return {
      status: row?.status === 'PAUSED' ? 'paused' : 'active',
      changed_by: row?.status_changed_by ?? null,
      changed_at: row?.status_changed_at == null ? null : toIso(row.status_changed_at),
      reason: row?.status_reason ?? null,
      is_on: this.#isOn,
      outage: this.#outage() ?? null,
    }
  }
}

function statusOf(
  { removed_at, enabled, end_at }: Readonly<ScheduleRow>,
  pause: Pause | null,
  hasNext: boolean,
): ScheduleDetail['status'] {
  if (removed_at !== null) return 'removed'
  if (!enabled) return 'disabled'
  if (end_at !== null && !hasNext) return 'ended'
  return pause === null ? 'active' : 'paused'
}

/** The state of a schedule without what only the schedule controller needs. */
function wireState(state: Readonly<ScheduleStateRow>): ScheduleDetail['state'] {
  const { undecided: _, asked_ahead: __, triggered: ___, skipped: ____, ...shown } = wireRow(scheduleState, state)
  return shown
}
