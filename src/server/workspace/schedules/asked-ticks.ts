import type {
  AcceptedCatchup,
  AcceptedSchedule,
  AcceptedTrigger,
  CatchupBody,
  TriggerBody,
} from '../../../api/automation/schedule-contract.ts'
import type { ScheduleDefinition } from '../../../contract/schedule.ts'
import { GraphPartitions } from '../../../domain/assets/graph-partitions.ts'
import { dynamicKeysOf } from '../../../domain/partitions/dynamic-keys.ts'
import type { TenantSecret } from '../../../domain/runs/run-ids.ts'
import { runKeyIndex } from '../../../domain/runs/run-key-index.table.ts'
import { tickEvents } from '../../../domain/schedules/deciding/tick-events.ts'
import { manualTickId, runKeyOfTick, tickId } from '../../../domain/schedules/deciding/tick-ids.ts'
import { type GraphAtTick, selectsPartitions } from '../../../domain/schedules/deciding/work-of-tick.ts'
import { cadenceIfAny } from '../../../domain/schedules/moments/cadence-if-any.ts'
import type { ScheduleRow } from '../../../domain/schedules/schedule-definitions.table.ts'
import { scheduleState } from '../../../domain/schedules/schedule-state.table.ts'
import { ScheduleTicked } from '../../../domain/schedules/schedule-ticked.event.ts'
import { scheduleTicks } from '../../../domain/schedules/schedule-ticks.table.ts'
import { momentsIn } from '../../../domain/why/say.ts'
import type { TickRow } from '../../../domain/why/why-schedule.ts'
import { assert } from '../../../lib/assert.ts'
import { ServoError } from '../../../lib/error.ts'
import { toIso, toMs } from '../../../lib/time.ts'
import type { NewEvent } from '../../../model/event.ts'
import { type Knowledge, lookup, record } from '../knowledge.ts'
import { runRequested } from '../requests.ts'
import type { RunsOptions } from '../runs.ts'
import { SkippedSpans } from './skipped-spans.ts'

/** A tick that the clock did not bring. */
interface AskedTick {
  readonly tick: number
  readonly cause: 'manual' | 'catch_up'
  readonly tick_id: string
  /** The record of ticks that were skipped together, of which it was one. */
  readonly skipped_in?: string | null
  readonly user: string
  readonly request_id?: string | undefined
  /** Partitions that are named instead of those of the schedule. */
  readonly partitions?: readonly string[] | undefined
}

interface CatchupRequest {
  readonly user: string
  /** A tick that this request has triggered before is answered as then. */
  readonly request_id: string | undefined
  readonly dry: DryTicks | undefined
  readonly spans: SkippedSpans
  /** Throws if the schedule was removed. */
  readonly checkPresent: () => void
}

interface CatchupSchedules {
  /** Finds a removed schedule too, unless another has its name now. */
  find(idOrName: string): Readonly<ScheduleRow>
  checkPresent(row: Readonly<ScheduleRow>): void
}

/** Run ids are made with a secret that only a leader has. Those of a dry run are shown to nobody. */
const DRY_RUN: TenantSecret = { id: 'dry_run', value: 'dry_run' }

const refuse = (code: string, message: string, hint?: string): ServoError =>
  new ServoError('invalid', code, message, hint === undefined ? {} : { hint })

/** Ticks that a user asks for: now, or for a moment that has passed. None of them moves the cadence of its schedule. */
export class AskedTicks {
  readonly #known: Knowledge
  readonly #runIds: RunsOptions['runIds']

  constructor(known: Knowledge, runIds: RunsOptions['runIds']) {
    this.#known = known
    this.#runIds = runIds
  }

  /** `check` refuses a trigger that is new; one that is repeated gets its first answer. */
  async trigger(row: Readonly<ScheduleRow>, body: TriggerBody, user: string, check: () => void): Promise<AcceptedTrigger> {
    const { request_id, partitions, scheduled_for } = body
    if (partitions !== undefined && scheduled_for !== undefined)
      throw refuse('bad_trigger', '`partitions` and `scheduled_for` cannot be combined', 'Give one of them.')
    const request = request_id ?? this.#known.mintId()
    const tick_id = manualTickId(row.schedule_id, request)
    const before = request_id === undefined ? undefined : await this.#recorded(tick_id)
    if (before === undefined) check()
    const now = this.#known.now()
    const tick = scheduled_for === undefined ? now : toMs(scheduled_for)
    if (tick > now) throw notYet(row, tick)
    const event_id =
      before === undefined
        ? (await record(this.#known, this.#decided(row, { tick, cause: 'manual', tick_id, user, partitions }).events)).event_id
        : null
    const made = before ?? (await this.#recorded(tick_id))
    assert(made !== undefined, 'a tick that was triggered is on record')
    if (differs(made, body)) throw reused()
    return {
      ...acceptedTick(row, { event_id, at: now, request }),
      tick_id,
      run_id: await this.#runOf(tick_id),
      created: event_id !== null,
      scheduled_for: toIso(made.scheduled_for ?? tick),
      partitions: made.partition_selection,
    }
  }

  async catchUp(
    { ticks, dry_run = false, request_id }: CatchupBody,
    user: string,
    schedules: CatchupSchedules,
  ): Promise<AcceptedCatchup> {
    const accepted: AcceptedCatchup['accepted'][number][] = []
    const refused: AcceptedCatchup['refused'][number][] = []
    const dry = dry_run ? new DryTicks() : undefined
    const spans = new SkippedSpans(this.#known)
    for (const asked of ticks) {
      try {
        const row = schedules.find(asked.schedule_id)
        const request = { user, request_id, dry, spans, checkPresent: () => schedules.checkPresent(row) }
        accepted.push({ ...asked, ...(await this.#catchUpOne(row, toMs(asked.scheduled_for), request)) })
      } catch (error) {
        if (!(error instanceof ServoError) || error.kind === 'unavailable' || error.kind === 'bug') throw error
        refused.push({ ...asked, code: error.code, reason: error.message })
      }
    }
    return { dry_run, accepted, refused }
  }

  async #catchUpOne(
    row: Readonly<ScheduleRow>,
    tick: number,
    { user, request_id, dry, spans, checkPresent }: CatchupRequest,
  ): Promise<{ run_id: string | null; partitions: readonly string[] | null }> {
    const tick_id = tickId(row.schedule_id, tick)
    const known = await lookup(this.#known, scheduleTicks, tick_id)
    // A repeated request gets its first answer, whatever became of the schedule and the clock since.
    if (known?.status === 'triggered' && request_id !== undefined && known.request_id === request_id)
      return { run_id: await this.#runOf(tick_id), partitions: known.partition_selection }
    checkPresent()
    if (tick > this.#known.now()) throw notYet(row, tick)
    if (cadenceIfAny(row)?.has(tick) !== true) throw notATick(row, tick)
    if (tick <= row.created_at) throw notDeclaredYet(row, tick)
    if (known?.status === 'triggered' || dry?.has(tick_id))
      throw refuse('already_triggered', `${row.schedule_name} was already triggered for ${inZone(row, tick)}`)
    const skipped_in = known === undefined && dry === undefined ? await spans.idOf(row.schedule_id, tick) : null
    const { events, partitions } = this.#decided(row, { tick, cause: 'catch_up', tick_id, skipped_in, user, request_id }, dry)
    if (dry !== undefined) {
      dry.add(tick_id)
      return { run_id: null, partitions }
    }
    await record(this.#known, events)
    return { run_id: await this.#runOf(tick_id), partitions }
  }

  /** The events of a tick that is triggered. If it can ask for nothing, the caller is told, and nothing is recorded. */
  #decided(
    row: Readonly<ScheduleRow>,
    { tick, cause, tick_id, skipped_in = null, user, request_id, partitions }: AskedTick,
    dry?: DryTicks,
  ): { events: readonly NewEvent[]; partitions: readonly string[] | null } {
    const at = graphAt(this.#known, tick)
    if (partitions !== undefined) refusePartitions(row.schedule_name, row, at)
    const state = this.#known.rows().hot(scheduleState).get(row.schedule_id)
    const unfinished = state?.open_runs ?? []
    const open = dry === undefined ? new Set(unfinished) : dry.open(row.schedule_id, unfinished)
    const secret = dry === undefined ? this.#runIds() : DRY_RUN
    const events = tickEvents({
      definition: partitions === undefined ? row : { ...row, partition_selection: [...partitions] },
      ...{ tick, cause, open, at, clockTurn: state?.clock_turns ?? 0 },
      requestRun: (wanted) => runRequested(this.#known.scope, secret, wanted),
      asked: { tick_id, requested_by: user, request_id, skipped_in },
    })
    assert(events !== undefined, 'a tick that a user asks for depends on no condition')
    const ticked = events.find((event) => event.definition === ScheduleTicked)
    const payload = ticked === undefined ? undefined : ScheduleTicked.parse(ticked.payload)
    if (payload?.success === false) throw refuse('bad_trigger', payload.error.issues[0]?.message ?? 'the tick cannot be kept')
    assert(payload !== undefined, 'a tick is decided')
    const { status, reason_code, reason, partition_selection } = payload.data
    if (status !== 'triggered') throw refuse(reason_code ?? 'not_triggered', reason ?? 'the tick asks for nothing')
    return { events, partitions: partition_selection ?? null }
  }

  async #recorded(tickIdAsked: string): Promise<TickRow | undefined> {
    const found = await lookup(this.#known, scheduleTicks, tickIdAsked)
    // Its run may have been heard of first.
    return found?.tick_event_id == null ? undefined : found
  }

  async #runOf(tick: string): Promise<string> {
    const made = await lookup(this.#known, runKeyIndex, runKeyOfTick(tick))
    assert(made !== undefined, 'a tick that was triggered has a run')
    return made.run_id
  }
}

export function graphAt(known: Knowledge, tick: number): GraphAtTick {
  const { graph, mappings } = known.graph.get()
  const dynamicKeys = dynamicKeysOf(known.rows())
  return { graph, partitions: new GraphPartitions(mappings, { nowMs: tick, dynamicKeys }) }
}

function refusePartitions(name: string, selecting: Pick<ScheduleRow, 'asset_selection'>, at: GraphAtTick): void {
  if (selectsPartitions(selecting, at)) return
  throw refuse('no_partitions', `${name} selects no asset with partitions`, 'Remove the partitions from the request.')
}

/** Refuses a schedule that names partitions of assets that have none: it would run without them. */
export function checkPartitions(known: Knowledge, { name, ...definition }: ScheduleDefinition): void {
  if (definition.partition_selection == null) return
  refusePartitions(name, definition, graphAt(known, known.now()))
}

/** What a dry run would have triggered so far: its runs would be in the way of those that follow. */
class DryTicks {
  readonly #ticks = new Set<string>()
  readonly #open = new Map<string, Set<string>>()

  has(tick: string): boolean {
    return this.#ticks.has(tick)
  }

  add(tick: string): void {
    this.#ticks.add(tick)
  }

  open(scheduleId: string, unfinished: readonly string[]): Set<string> {
    const open = this.#open.get(scheduleId) ?? new Set(unfinished)
    this.#open.set(scheduleId, open)
    return open
  }
}

/** True if a request under the id of another asks for something else. What it leaves out is as it was. */
function differs(made: TickRow, { partitions, scheduled_for }: TriggerBody): boolean {
  if (scheduled_for !== undefined && toMs(scheduled_for) !== made.scheduled_for) return true
  if (partitions === undefined) return false
  return JSON.stringify([...partitions].sort()) !== JSON.stringify([...(made.partition_selection ?? [])].sort())
}

const acceptedTick = (
  { schedule_id, schedule_name }: Readonly<ScheduleRow>,
  { event_id, at, request }: { event_id: string | null; at: number; request: string },
): AcceptedSchedule => ({
  schedule_id,
  schedule_name,
  message: 'schedule triggered',
  accepted_event_id: event_id,
  accepted_at: toIso(at),
  correlation_id: request,
})

const inZone = ({ timezone }: Readonly<ScheduleRow>, tick: number): string => momentsIn(timezone, null)(toIso(tick))

const notYet = (row: Readonly<ScheduleRow>, tick: number): ServoError =>
  refuse('in_the_future', `${inZone(row, tick)} (${row.timezone}) is in the future`, 'Name a time in the past.')

/** It was not due, and nobody missed it. */
const notDeclaredYet = (row: Readonly<ScheduleRow>, tick: number): ServoError =>
  refuse(
    'not_declared_yet',
    `${row.schedule_name} was declared at ${inZone(row, row.created_at)} (${row.timezone}), after ${inZone(row, tick)}`,
    `Run it by hand: servo schedules trigger ${row.schedule_name} --at ${toIso(tick)}`,
  )

function notATick(row: Readonly<ScheduleRow>, tick: number): ServoError {
  const cadence = cadenceIfAny(row)
  const around = [cadence?.until(tick), cadence?.after(tick)].flatMap((near) => (near === undefined ? [] : [inZone(row, near)]))
  const near = around.length === 0 ? '' : `, but at ${around.join(' and ')}`
  return refuse('not_a_tick', `${row.schedule_name} does not tick at ${inZone(row, tick)} (${row.timezone})${near}`)
}

export const reused = (): ServoError =>
  new ServoError('conflict', 'idempotency_key_reused', 'another request used this id', {
    hint: 'Use a new id, or repeat the first request unchanged.',
  })
