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
  TriggerBody,
} from '../../../api/automation/schedule-contract.ts'
import { scheduleDefinition } from '../../../contract/schedule.ts'
import { AutomationPaused } from '../../../domain/automation/automation-paused.event.ts'
import { AutomationResumed } from '../../../domain/automation/automation-resumed.event.ts'
import { scheduleDefined } from '../../../domain/schedules/declared-schedules.ts'
import { type ScheduleRow, scheduleDefinitions } from '../../../domain/schedules/schedule-definitions.table.ts'
import { SchedulePaused } from '../../../domain/schedules/schedule-paused.event.ts'
import { ScheduleRemoved } from '../../../domain/schedules/schedule-removed.event.ts'
import { ScheduleResumed } from '../../../domain/schedules/schedule-resumed.event.ts'
import { scheduleState } from '../../../domain/schedules/schedule-state.table.ts'
import { ServoError } from '../../../lib/error.ts'
import { sha256 } from '../../../lib/hash.ts'
import { Mutex } from '../../../lib/mutex.ts'
import { toIso } from '../../../lib/time.ts'
import { type NewEvent, newEvent } from '../../../model/event.ts'
import { checkSelection } from '../check-selection.ts'
import { type Knowledge, record } from '../knowledge.ts'
import { recordedBefore } from '../recorded-change.ts'
import type { RunsOptions } from '../runs.ts'
import { checkStateVersion } from '../state-version.ts'
import { AskedTicks, checkPartitions, reused } from './asked-ticks.ts'
import { ScheduleReader } from './schedule-reader.ts'

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
  readonly #ticks: AskedTicks
  /** Of two changes at the same time, the second is checked against what the first has made. */
  readonly #turns = new Mutex()

  constructor(
    known: Knowledge,
    {
      runIds,
      automation,
      outage = () => undefined,
    }: Pick<RunsOptions, 'runIds'> & { automation?: boolean | undefined; outage?: (() => string | undefined) | undefined },
  ) {
    super(known, automation ?? false, outage)
    this.#known = known
    this.#ticks = new AskedTicks(known, runIds)
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
          checkPartitions(this.#known, definition)
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
      throw new ServoError('invalid', 'no_changes', `the request changes nothing of ${schedule_name}`, {
        hint: 'Name a field to change, such as cron_expressions or enabled.',
      })
    const name = changes.name ?? schedule_name
    const changed = () => scheduleDefinition.parse({ ...definitionOf(this.find(schedule_id)), ...changes })
    return await this.#change(
      { schedule_id, schedule_name: name },
      {
        request_id,
        eventOf: (request) => checked(scheduleDefined(changed(), schedule_id, 'api', request), user),
        check: () => {
          this.#checkVersion(this.#present(schedule_id), expected)
          this.#checkName(name, schedule_id)
          checkSelection(this.#known.graph.get().graph, 'asset_selection', changes.asset_selection ?? [])
          if (changes.asset_selection !== undefined || changes.partition_selection !== undefined)
            checkPartitions(this.#known, changed())
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
    const enable = row.origin === 'api' ? `servo schedules update ${row.schedule_name} --enable` : 'where it is declared'
    const disabled = `it is disabled. Enable it: ${enable}`
    const isOff = status === 'ACTIVE' && !row.enabled
    return await this.#change(row, {
      request_id,
      eventOf: (request) => {
        const change = { schedule_id, request_id: request, changed_by: user, reason: reason ?? null }
        return newEvent(status === 'PAUSED' ? SchedulePaused : ScheduleResumed, change, { actor: user })
      },
      check: () => {
        this.#checkVersion(this.#present(schedule_id), expected)
        const now = this.#known.rows().hot(scheduleState).get(schedule_id)?.status ?? 'ACTIVE'
        if (now !== status) return undefined
        if (isOff) return `${row.schedule_name} is not paused; ${disabled}`
        return `schedule was already ${status === 'PAUSED' ? 'paused' : 'active'}`
      },
      message:
        status === 'PAUSED'
          ? `schedule paused. Resume it: servo schedules resume ${row.schedule_name}`
          : `schedule resumed${isOff ? `; ${disabled}` : ''}`,
    })
  }

  async trigger(idOrName: string, body: TriggerBody, user: string, expected?: number): Promise<AcceptedTrigger> {
    const row = this.find(idOrName)
    const check = () => this.#checkVersion(this.#present(row.schedule_id), expected)
    const ask = () => this.#ticks.trigger(row, body, user, check)
    // Only what depends on a version has to wait for other changes.
    return await (expected === undefined ? ask() : this.#turns.run(ask))
  }

  async catchUp(body: CatchupBody, user: string): Promise<AcceptedCatchup> {
    const find = (idOrName: string) => this.find(idOrName)
    return await this.#ticks.catchUp(body, user, { find, checkPresent: (row) => this.#present(row.schedule_id) })
  }

  async switchAutomation(status: 'active' | 'paused', body: SwitchBody, user: string): Promise<AcceptedSwitch> {
    const now = await this.automation()
    const request_id = body.request_id ?? this.#known.mintId()
    if (now.status === status) return { status, message: `automation was already ${status}`, accepted_event_id: null }
    const change = { request_id, changed_by: user, reason: body.reason ?? null }
    const event = newEvent(status === 'paused' ? AutomationPaused : AutomationResumed, change, { actor: user })
    const { event_id } = await record(this.#known, [event])
    return { status, message: `automation ${status === 'paused' ? 'paused' : 'resumed'}`, accepted_event_id: event_id }
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
    throw new ServoError('conflict', 'schedule_exists', `schedule ${name} already exists`, {
      hint: taken.origin === 'api' ? 'Update it, or choose another name.' : 'It is declared in the project code.',
      facts: { schedule_id: taken.schedule_id },
    })
  }

  #present(idOrName: string): Readonly<ScheduleRow> {
    const row = this.find(idOrName)
    if (row.removed_at === null) return row
    throw new ServoError('conflict', 'schedule_removed', `${row.schedule_name} was removed at ${toIso(row.removed_at)}`, {
      hint: 'Its history is kept. Declare it again to use it.',
    })
  }

  #ownedByApi(idOrName: string): Readonly<ScheduleRow> {
    const row = this.#present(idOrName)
    if (row.origin === 'api') return row
    throw new ServoError('conflict', 'declared_in_code', `${row.schedule_name} is declared in the project code`, {
      hint: `Change it there${row.file === null ? '' : `: ${row.file}${row.line === null ? '' : `:${row.line}`}`}, or pause it.`,
    })
  }
}

/** The same for the same request, so that a create that is repeated makes no second schedule. */
const idOfRequest = (requestId: string): string => `schedule_${sha256(`schedule made by request ${requestId}`).slice(0, 26)}`

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
  const hint: unknown = issue?.code === 'custom' ? issue.params?.['hint'] : undefined
  throw new ServoError('invalid', 'bad_schedule', `${field}: ${issue?.message}`, {
    facts: { field },
    ...(typeof hint === 'string' && { hint }),
  })
}
