import type {
  AcceptedCatchup,
  AcceptedSchedule,
  AcceptedSwitch,
  AcceptedTrigger,
  CatchupBody,
  NewScheduleBody,
  RequestBody,
  ScheduleChangesBody,
  SchedulesApi,
  SwitchBody,
} from '../../api/automation/schedule-contract.ts'
import { scheduleDefinition } from '../../contract/schedule.ts'
import { GraphPartitions } from '../../domain/assets/graph-partitions.ts'
import { AutomationPaused } from '../../domain/automation/automation-paused.event.ts'
import { AutomationResumed } from '../../domain/automation/automation-resumed.event.ts'
import { dynamicKeysOf } from '../../domain/partitions/dynamic-keys.ts'
import { runKeyIndex } from '../../domain/runs/run-key-index.table.ts'
import { scheduleDefined } from '../../domain/schedules/declared-schedules.ts'
import { cadenceIfAny } from '../../domain/schedules/regime.ts'
import { type ScheduleRow, scheduleDefinitions } from '../../domain/schedules/schedule-definitions.table.ts'
import { SchedulePaused } from '../../domain/schedules/schedule-paused.event.ts'
import { ScheduleRemoved } from '../../domain/schedules/schedule-removed.event.ts'
import { ScheduleResumed } from '../../domain/schedules/schedule-resumed.event.ts'
import { scheduleState } from '../../domain/schedules/schedule-state.table.ts'
import { ScheduleTicked } from '../../domain/schedules/schedule-ticked.event.ts'
import { scheduleTicks } from '../../domain/schedules/schedule-ticks.table.ts'
import { tickEvents } from '../../domain/schedules/tick-events.ts'
import { manualTickId, runKeyOfTick, tickId } from '../../domain/schedules/tick-ids.ts'
import type { GraphAtTick } from '../../domain/schedules/work-of-tick.ts'
import { assert } from '../../lib/assert.ts'
import { ServoError } from '../../lib/error.ts'
import { toIso, toMs } from '../../lib/time.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import { type Knowledge, lookup, record } from './knowledge.ts'
import { runRequested } from './requests.ts'
import type { RunsOptions } from './runs.ts'
import { ScheduleReader } from './schedule-reader.ts'

/** Everything that can be asked of schedules, as routes and commands ask it. */
export class Schedules extends ScheduleReader implements SchedulesApi {
  readonly #known: Knowledge
  readonly #runIds: RunsOptions['runIds']

  constructor(known: Knowledge, { runIds }: Pick<RunsOptions, 'runIds'>) {
    super(known)
    this.#known = known
    this.#runIds = runIds
  }

  async create({ request_id, ...definition }: NewScheduleBody, user: string): Promise<AcceptedSchedule> {
    const all = [...this.#known.rows().hot(scheduleDefinitions).all()]
    const taken = all.find((row) => row.schedule_name === definition.name && row.removed_at === null)
    if (taken !== undefined)
      throw new ServoError('conflict', 'schedule_exists', `there is a schedule ${definition.name} already`, {
        hint: taken.origin === 'api' ? 'Change it, or choose another name.' : 'It is declared in the code of the project.',
        facts: { schedule_id: taken.schedule_id },
      })
    const request = request_id ?? this.#known.mintId()
    const schedule_id = this.#known.mintId()
    const event = checked(scheduleDefined(scheduleDefinition.parse(definition), schedule_id, 'api', request), user)
    return await this.#accepted({ schedule_id, schedule_name: definition.name }, request, [event], 'schedule made')
  }

  async update(idOrName: string, { request_id, ...changes }: ScheduleChangesBody, user: string): Promise<AcceptedSchedule> {
    const row = this.#ownedByApi(idOrName)
    const request = request_id ?? this.#known.mintId()
    const definition = scheduleDefinition.parse({ ...definitionOf(row), ...changes })
    const event = checked(scheduleDefined(definition, row.schedule_id, 'api', request), user)
    const named = { schedule_id: row.schedule_id, schedule_name: definition.name }
    return await this.#accepted(named, request, [event], 'schedule changed')
  }

  async remove(idOrName: string, { request_id }: RequestBody, user: string): Promise<AcceptedSchedule> {
    const row = this.#ownedByApi(idOrName)
    const request = request_id ?? this.#known.mintId()
    const removed = { schedule_id: row.schedule_id, request_id: request, removed_by: user }
    return await this.#accepted(row, request, [newEvent(ScheduleRemoved, removed, { actor: user })], 'schedule deleted')
  }

  pause(idOrName: string, body: SwitchBody, user: string): Promise<AcceptedSchedule> {
    return this.#switch(idOrName, 'PAUSED', body, user)
  }

  resume(idOrName: string, body: SwitchBody, user: string): Promise<AcceptedSchedule> {
    return this.#switch(idOrName, 'ACTIVE', body, user)
  }

  async #switch(idOrName: string, status: 'ACTIVE' | 'PAUSED', body: SwitchBody, user: string): Promise<AcceptedSchedule> {
    const row = this.#present(idOrName)
    const request_id = body.request_id ?? this.#known.mintId()
    const done = status === 'PAUSED' ? 'paused' : 'active'
    const now = this.#known.rows().hot(scheduleState).get(row.schedule_id)?.status ?? 'ACTIVE'
    if (now === status) return await this.#accepted(row, request_id, [], `schedule was ${done} already`)
    const change = { schedule_id: row.schedule_id, request_id, changed_by: user, reason: body.reason ?? null }
    const event = newEvent(status === 'PAUSED' ? SchedulePaused : ScheduleResumed, change, { actor: user })
    return await this.#accepted(row, request_id, [event], `schedule ${status === 'PAUSED' ? 'paused' : 'resumed'}`)
  }

  async trigger(idOrName: string, { request_id }: RequestBody, user: string): Promise<AcceptedTrigger> {
    const row = this.#present(idOrName)
    const request = request_id ?? this.#known.mintId()
    const tick = this.#known.now()
    const tick_id = manualTickId(row.schedule_id, request)
    const { run_id, created, accepted } = await this.#ask(row, { tick, cause: 'manual', tick_id, user, request })
    return { ...accepted, tick_id, run_id, created }
  }

  async catchUp({ ticks }: CatchupBody, user: string): Promise<AcceptedCatchup> {
    const accepted: AcceptedCatchup['accepted'][number][] = []
    const refused: AcceptedCatchup['refused'][number][] = []
    for (const asked of ticks) {
      try {
        accepted.push({ ...asked, run_id: await this.#catchUpOne(asked.schedule_id, toMs(asked.scheduled_for), user) })
      } catch (error) {
        if (!(error instanceof ServoError) || error.kind === 'unavailable' || error.kind === 'bug') throw error
        refused.push({ ...asked, reason: error.message })
      }
    }
    return { accepted, refused }
  }

  async #catchUpOne(idOrName: string, tick: number, user: string): Promise<string> {
    const row = this.#present(idOrName)
    const refuse = (code: string, why: string): ServoError => new ServoError('invalid', code, why)
    if (tick > this.#known.now()) throw refuse('in_the_future', `${toIso(tick)} has not come yet`)
    if (cadenceIfAny(row)?.has(tick) !== true)
      throw refuse('not_a_tick', `${row.schedule_name} does not tick at ${toIso(tick)}`)
    const tick_id = tickId(row.schedule_id, tick)
    const known = await lookup(this.#known, scheduleTicks, tick_id)
    if (known?.status === 'triggered') throw refuse('already_triggered', `${toIso(tick)} was triggered already`)
    const request = this.#known.mintId()
    return (await this.#ask(row, { tick, cause: 'catch_up', tick_id, user, request })).run_id
  }

  async switchAutomation(status: 'active' | 'paused', body: SwitchBody, user: string): Promise<AcceptedSwitch> {
    const now = await this.automation()
    const request_id = body.request_id ?? this.#known.mintId()
    if (now.status === status) return { status, message: `automation was ${status} already`, accepted_event_id: null }
    const change = { request_id, changed_by: user, reason: body.reason ?? null }
    const event = newEvent(status === 'paused' ? AutomationPaused : AutomationResumed, change, { actor: user })
    const { event_id } = await record(this.#known, [event])
    return { status, message: `automation ${status === 'paused' ? 'paused' : 'resumed'}`, accepted_event_id: event_id }
  }

  /** Triggers a tick that the clock did not bring. If it can ask for nothing, the caller is told, and nothing is recorded. */
  async #ask(
    definition: Readonly<ScheduleRow>,
    asked: { tick: number; cause: 'manual' | 'catch_up'; tick_id: string; user: string; request: string },
  ): Promise<{ run_id: string; created: boolean; accepted: AcceptedSchedule }> {
    const { tick, cause, tick_id, user, request } = asked
    const { schedule_id } = definition
    const open = new Set(this.#known.rows().hot(scheduleState).get(schedule_id)?.open_runs ?? [])
    const requestRun = (wanted: Parameters<typeof runRequested>[2]) => runRequested(this.#known.scope, this.#runIds(), wanted)
    const events = tickEvents({
      ...{ definition, tick, cause, open, requestRun, at: this.#graphAt(tick) },
      asked: { tick_id, requested_by: user },
    })
    assert(events !== undefined, 'a tick that a user asks for depends on no condition')
    const ticked = events.find((event) => event.definition === ScheduleTicked)
    const payload = ticked === undefined ? undefined : ScheduleTicked.parse(ticked.payload)
    assert(payload?.success === true, 'a tick is decided')
    if (payload.data.status !== 'triggered')
      throw new ServoError(
        'invalid',
        payload.data.reason_code ?? 'not_triggered',
        payload.data.reason ?? 'the tick asks for nothing',
      )
    const accepted = await this.#accepted(definition, request, events, 'schedule triggered')
    const made = await lookup(this.#known, runKeyIndex, runKeyOfTick(tick_id))
    assert(made !== undefined, 'a tick that was triggered has a run')
    return { run_id: made.run_id, created: accepted.accepted_event_id !== null, accepted }
  }

  #graphAt(tick: number): GraphAtTick {
    const { graph, mappings } = this.#known.graph.get()
    const dynamicKeys = dynamicKeysOf(this.#known.rows())
    return { graph, partitions: new GraphPartitions(mappings, { nowMs: tick, dynamicKeys }) }
  }

  #present(idOrName: string): Readonly<ScheduleRow> {
    const row = this.find(idOrName)
    if (row.removed_at === null) return row
    throw new ServoError('conflict', 'schedule_removed', `${row.schedule_name} was removed at ${toIso(row.removed_at)}`, {
      hint: 'Its history stays; declare it again to use it.',
    })
  }

  #ownedByApi(idOrName: string): Readonly<ScheduleRow> {
    const row = this.#present(idOrName)
    if (row.origin === 'api') return row
    throw new ServoError('conflict', 'declared_in_code', `${row.schedule_name} is declared in the code of the project`, {
      hint: `Change it there${row.file === null ? '' : `: ${row.file}${row.line === null ? '' : `:${row.line}`}`}, or pause it.`,
    })
  }

  async #accepted(
    { schedule_id, schedule_name }: Pick<ScheduleRow, 'schedule_id' | 'schedule_name'>,
    request_id: string,
    events: readonly NewEvent[],
    message: string,
  ): Promise<AcceptedSchedule> {
    const { event_id } = events.length === 0 ? { event_id: null } : await record(this.#known, events)
    return {
      schedule_id,
      schedule_name,
      message,
      accepted_event_id: event_id,
      accepted_at: toIso(this.#known.now()),
      correlation_id: request_id,
    }
  }
}

/** The definition of a schedule as it was declared. */
function definitionOf(row: Readonly<ScheduleRow>): object {
  const { schedule_name: name, start_at, end_at, ...rest } = row
  return {
    ...rest,
    name,
    start_at: start_at === null ? null : toIso(start_at),
    end_at: end_at === null ? null : toIso(end_at),
    renamed_from: null,
  }
}

/** The event, with its maker. What is wrong with it is the caller's mistake, and is said of the field. */
function checked(event: NewEvent, actor: string): NewEvent {
  const parsed = event.definition.parse(event.payload)
  if (parsed.success) return { ...event, actor }
  const [issue] = parsed.error.issues
  const field = issue?.path.join('.') ?? ''
  throw new ServoError('invalid', 'bad_schedule', `${field}: ${issue?.message}`, { facts: { field } })
}
