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
import { sha256 } from '../../lib/hash.ts'
import { Mutex } from '../../lib/mutex.ts'
import { toIso, toMs } from '../../lib/time.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import { checkSelection } from './check-selection.ts'
import { type Knowledge, lookup, record } from './knowledge.ts'
import { recordedBefore } from './recorded-change.ts'
import { runRequested } from './requests.ts'
import type { RunsOptions } from './runs.ts'
import { ScheduleReader } from './schedule-reader.ts'
import { checkStateVersion } from './state-version.ts'

interface Change {
  readonly request_id: string | undefined
  readonly eventOf: (request: string) => NewEvent
  /** Refuses the change, or says that there is nothing to change. */
  readonly check: () => string | undefined
  readonly message: string
}

/** Everything that can be asked of schedules, as routes and commands ask it. */
export class Schedules extends ScheduleReader implements SchedulesApi {
  readonly #known: Knowledge
  readonly #runIds: RunsOptions['runIds']
  /** Of two changes at the same time, the second is checked against what the first has made. */
  readonly #turns = new Mutex()

  constructor(known: Knowledge, { runIds, automation }: Pick<RunsOptions, 'runIds'> & { automation?: boolean | undefined }) {
    super(known, automation ?? false)
    this.#known = known
    this.#runIds = runIds
  }

  create({ request_id, ...body }: NewScheduleBody, user: string): Promise<AcceptedSchedule> {
    const definition = scheduleDefinition.parse(body)
    const schedule_id = request_id === undefined ? this.#known.mintId() : idOfRequest(request_id)
    return this.#change(
      { schedule_id, schedule_name: definition.name },
      {
        request_id,
        eventOf: (request) => checked(scheduleDefined(definition, schedule_id, 'api', request), user),
        check: () => {
          // The id follows from that of the request, which therefore made another schedule before.
          if (this.#known.rows().hot(scheduleDefinitions).get(schedule_id) !== undefined) throw reused()
          this.#checkName(definition.name, schedule_id)
          checkSelection(this.#known.graph.get().graph, 'asset_selection', definition.asset_selection)
          return undefined
        },
        message: 'schedule made',
      },
    )
  }

  async update(
    idOrName: string,
    { request_id, ...changes }: ScheduleChangesBody,
    user: string,
    expected?: number,
  ): Promise<AcceptedSchedule> {
    const { schedule_id, schedule_name } = this.#ownedByApi(idOrName)
    if (Object.keys(changes).length === 0)
      throw new ServoError('invalid', 'no_changes', `nothing is to be changed of ${schedule_name}`, {
        hint: 'Name what should change, such as cron_expressions or enabled.',
      })
    const name = changes.name ?? schedule_name
    return await this.#change(
      { schedule_id, schedule_name: name },
      {
        request_id,
        eventOf: (request) => {
          const definition = scheduleDefinition.parse({ ...definitionOf(this.find(schedule_id)), ...changes })
          return checked(scheduleDefined(definition, schedule_id, 'api', request), user)
        },
        check: () => {
          this.#checkVersion(this.#present(schedule_id), expected)
          this.#checkName(name, schedule_id)
          checkSelection(this.#known.graph.get().graph, 'asset_selection', changes.asset_selection ?? [])
          return undefined
        },
        message: 'schedule changed',
      },
    )
  }

  async remove(idOrName: string, { request_id }: RequestBody, user: string, expected?: number): Promise<AcceptedSchedule> {
    const row = this.find(idOrName)
    const { schedule_id } = row
    if (row.removed_at === null) this.#ownedByApi(schedule_id)
    return await this.#change(row, {
      request_id,
      eventOf: (request) => {
        const removed = { schedule_id, request_id: request, removed_by: user }
        return newEvent(ScheduleRemoved, removed, { actor: user })
      },
      check: () => {
        this.#checkVersion(this.#present(schedule_id), expected)
        return undefined
      },
      message: 'schedule deleted',
    })
  }

  pause(idOrName: string, body: SwitchBody, user: string, expected?: number): Promise<AcceptedSchedule> {
    return this.#switch(idOrName, 'PAUSED', { ...body, user, expected })
  }

  resume(idOrName: string, body: SwitchBody, user: string, expected?: number): Promise<AcceptedSchedule> {
    return this.#switch(idOrName, 'ACTIVE', { ...body, user, expected })
  }

  async #switch(
    idOrName: string,
    status: 'ACTIVE' | 'PAUSED',
    { user, expected, reason, request_id }: SwitchBody & { user: string; expected: number | undefined },
  ): Promise<AcceptedSchedule> {
    const row = this.find(idOrName)
    const { schedule_id } = row
    const still = status === 'ACTIVE' && !row.enabled ? ', but it stays disabled' : ''
    return await this.#change(row, {
      request_id,
      eventOf: (request) => {
        const change = { schedule_id, request_id: request, changed_by: user, reason: reason ?? null }
        return newEvent(status === 'PAUSED' ? SchedulePaused : ScheduleResumed, change, { actor: user })
      },
      check: () => {
        this.#checkVersion(this.#present(schedule_id), expected)
        const now = this.#known.rows().hot(scheduleState).get(schedule_id)?.status ?? 'ACTIVE'
        return now === status ? `schedule was ${status === 'PAUSED' ? 'paused' : 'active'} already${still}` : undefined
      },
      message: `schedule ${status === 'PAUSED' ? 'paused' : 'resumed'}${still}`,
    })
  }

  async trigger(idOrName: string, { request_id }: RequestBody, user: string, expected?: number): Promise<AcceptedTrigger> {
    const row = this.#present(idOrName)
    const request = request_id ?? this.#known.mintId()
    const tick_id = manualTickId(row.schedule_id, request)
    const ask = async (): Promise<AcceptedTrigger> => {
      const isRepeated = expected !== undefined && (await lookup(this.#known, scheduleTicks, tick_id)) !== undefined
      if (!isRepeated) this.#checkVersion(row, expected)
      const tick = this.#known.now()
      const { run_id, created, accepted } = await this.#ask(row, { tick, cause: 'manual', tick_id, user, request })
      return { ...accepted, tick_id, run_id, created }
    }
    // Only what depends on a version has to wait for other changes.
    return await (expected === undefined ? ask() : this.#turns.run(ask))
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
    const { event_id } = await record(this.#known, events)
    const accepted = {
      schedule_id,
      schedule_name: definition.schedule_name,
      message: 'schedule triggered',
      accepted_event_id: event_id,
      accepted_at: toIso(this.#known.now()),
      correlation_id: request,
    }
    const made = await lookup(this.#known, runKeyIndex, runKeyOfTick(tick_id))
    assert(made !== undefined, 'a tick that was triggered has a run')
    return { run_id: made.run_id, created: event_id !== null, accepted }
  }

  #graphAt(tick: number): GraphAtTick {
    const { graph, mappings } = this.#known.graph.get()
    const dynamicKeys = dynamicKeysOf(this.#known.rows())
    return { graph, partitions: new GraphPartitions(mappings, { nowMs: tick, dynamicKeys }) }
  }

  /** Records a change once. Of a request that has an id and is repeated, the first answer counts, whatever happened since. */
  #change(
    { schedule_id, schedule_name }: Pick<ScheduleRow, 'schedule_id' | 'schedule_name'>,
    { request_id, eventOf, check, message }: Change,
  ): Promise<AcceptedSchedule> {
    return this.#turns.run(async () => {
      const request = request_id ?? this.#known.mintId()
      const event = eventOf(request)
      const accepted = (what: string, event_id: string | null, at: number): AcceptedSchedule => ({
        schedule_id,
        schedule_name,
        message: what,
        accepted_event_id: event_id,
        accepted_at: toIso(at),
        correlation_id: request,
      })
      const before = request_id === undefined ? undefined : await recordedBefore(this.#known, event)
      if (before !== undefined) return accepted(message, before.event_id, before.at)
      const already = check()
      const now = this.#known.now()
      if (already !== undefined) return accepted(already, null, now)
      return accepted(message, (await record(this.#known, [event])).event_id, now)
    })
  }

  #checkVersion({ schedule_id, schedule_name }: Readonly<ScheduleRow>, expected: number | undefined): void {
    const actual = this.#known.rows().hot(scheduleState).get(schedule_id)?.state_version ?? 0
    checkStateVersion(schedule_name, { expected, actual })
  }

  #checkName(name: string, scheduleId: string): void {
    const all = [...this.#known.rows().hot(scheduleDefinitions).all()]
    const taken = all.find((row) => row.schedule_name === name && row.removed_at === null && row.schedule_id !== scheduleId)
    if (taken === undefined) return
    throw new ServoError('conflict', 'schedule_exists', `there is a schedule ${name} already`, {
      hint: taken.origin === 'api' ? 'Change it, or choose another name.' : 'It is declared in the code of the project.',
      facts: { schedule_id: taken.schedule_id },
    })
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
}

/** The same for the same request, so that a create that is repeated makes no second schedule. */
const idOfRequest = (requestId: string): string => `schedule_${sha256(`schedule made by request ${requestId}`).slice(0, 26)}`

const reused = (): ServoError =>
  new ServoError('conflict', 'request_reused', 'the id of this request was used for another one', {
    hint: 'Use a new id, or repeat the first request exactly.',
  })

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
