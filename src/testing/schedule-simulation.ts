import { assetDefinition } from '../contract/project-manifest.ts'
import type { ScheduleDefinitionInput } from '../contract/schedule.ts'
import { parseCron } from '../cron/parse-cron.ts'
import { ticksFrom } from '../cron/ticks.ts'
import { assetDefinitions } from '../domain/assets/asset-definitions.table.ts'
import { AssetsDefined } from '../domain/assets/assets-defined.event.ts'
import { graphOf } from '../domain/assets/definitions.ts'
import { GraphPartitions } from '../domain/assets/graph-partitions.ts'
import type { AutomationRequest, RequestedRun } from '../domain/automation/request-run.ts'
import { requestFingerprint, runIdFromRunKey } from '../domain/runs/run-ids.ts'
import { RunRequested } from '../domain/runs/run-requested.event.ts'
import { type RunRow, runs } from '../domain/runs/runs.table.ts'
import type { Conditions } from '../domain/schedules/conditions.ts'
import { tickEvents } from '../domain/schedules/deciding/tick-events.ts'
import { tickId } from '../domain/schedules/deciding/tick-ids.ts'
import { scheduleController } from '../domain/schedules/schedule.controller.ts'
import { ScheduleDefined } from '../domain/schedules/schedule-defined.event.ts'
import { type ScheduleRow, scheduleDefinitions } from '../domain/schedules/schedule-definitions.table.ts'
import { SchedulePaused } from '../domain/schedules/schedule-paused.event.ts'
import { ScheduleRemoved } from '../domain/schedules/schedule-removed.event.ts'
import { ScheduleResumed } from '../domain/schedules/schedule-resumed.event.ts'
import { type ScheduleStateRow, scheduleState } from '../domain/schedules/schedule-state.table.ts'
import { scheduleTicks } from '../domain/schedules/schedule-ticks.table.ts'
import { PlanCreated } from '../domain/tasks/plan-created.event.ts'
import { assert } from '../lib/assert.ts'
import { sha256 } from '../lib/hash.ts'
import { canonicalJson } from '../lib/json.ts'
import type { Controller } from '../model/controller.ts'
import { type EventDefinition, newEvent } from '../model/event.ts'
import type { RowOf } from '../model/table.ts'
import { Bench } from './histories/fold.ts'
import { SimulatedWriter, TENANT, WORKSPACE } from './histories/writers.ts'

const SECRET = { id: 'secret-1', value: 'correct horse battery staple' }
const SCHEDULE = '01JHMPFN80SCHED00000000000'

/** One request of automation, as the server would make it. */
export function simulatedRequest(request: AutomationRequest): RequestedRun {
  const { run_key, asset_selection, partition_selection, labels, priority, source, after_run_ids, ...context } = request
  const run_id = runIdFromRunKey(TENANT, WORKSPACE, run_key, SECRET)
  const request_fingerprint = requestFingerprint(request)
  const payload = {
    run_key,
    run_id,
    secret_id: SECRET.id,
    request_fingerprint,
    asset_selection: [...asset_selection],
    partition_selection: partition_selection && [...partition_selection],
    trigger_source_ref: source,
    labels,
    priority,
    after_run_ids: after_run_ids ? [...after_run_ids] : null,
  }
  return { run_id, request_fingerprint, event: newEvent(RunRequested, payload, context) }
}

/** One schedule, its controller and a clock of their own: months of ticks in milliseconds. */
export class ScheduleSimulation {
  now: number
  /** The name with which the schedule is declared from now on. */
  name = 'nightly'
  readonly bench = new Bench()
  #writer: SimulatedWriter
  #processes = 1
  /** Answers for the code of schedules with a condition. */
  conditions: Conditions | undefined
  #controller: Controller | undefined
  /** The events that the controller decided, in that order: ids follow a clock that may be set back. */
  readonly #written = new Map<string, number>()
  #requests = 0
  #preparedFor: number | undefined

  constructor(startMs: number) {
    this.now = startMs
    this.#writer = new SimulatedWriter(1, 0, () => this.now)
    this.assets({ orders: null })
  }

  /** Declares assets, each with its partitions, and what they are made from. */
  assets(partitions: Readonly<Record<string, object | null>>, madeFrom: Readonly<Record<string, string>> = {}): void {
    const assets = Object.entries(partitions).map(([asset_key, declared]) => ({
      asset_key,
      asset_id: asset_key,
      definition: assetDefinition.parse({
        asset_key,
        kind: 'asset',
        partitions: declared,
        deps: Object.hasOwn(madeFrom, asset_key) ? [{ asset_key: madeFrom[asset_key] }] : [],
      }),
    }))
    this.tell(AssetsDefined, { graph_version: `g${++this.#requests}`, assets })
  }

  /** Writes a fact and, if the server runs, all that its controller decides because of it. */
  tell<P, I extends Record<string, unknown>>(definition: EventDefinition<P, I>, payload: I): void {
    this.bench.foldOne(this.#writer.write(definition, payload))
    const row = this.bench.state.hot(scheduleDefinitions).get(SCHEDULE)
    if (row !== undefined) this.#cadences.set(row.row_version, row)
    if (this.#controller !== undefined) this.#decide(this.#controller)
  }

  define(definition: Omit<ScheduleDefinitionInput, 'name' | 'asset_selection'> & { asset_selection?: string[] }): void {
    const declared = { asset_selection: ['orders'], ...definition, schedule_name: this.name }
    const definition_hash = sha256(canonicalJson(declared))
    const request_id = `define-${++this.#requests}`
    this.tell(ScheduleDefined, { ...declared, schedule_id: SCHEDULE, definition_hash, request_id })
  }

  remove(): void {
    this.tell(ScheduleRemoved, { schedule_id: SCHEDULE, request_id: `remove-${++this.#requests}`, removed_by: 'ana' })
  }

  setPaused(isPaused: boolean): void {
    const request = { schedule_id: SCHEDULE, request_id: `switch-${++this.#requests}`, changed_by: 'ana' }
    this.tell(isPaused ? SchedulePaused : ScheduleResumed, request)
  }

  /**
   * A user asks for a tick of the past. As a server does it, the record of ticks that were skipped together is looked for first; what is
   * returned writes the tick, and other facts may come in between.
   */
  askFor(tick: number): () => void {
    const definition = this.bench.state.hot(scheduleDefinitions).get(SCHEDULE)
    assert(definition !== undefined, 'the schedule was defined')
    const span = this.ticks().find(
      ({ scheduled_for, scheduled_until }) => (scheduled_for ?? tick) <= tick && tick <= (scheduled_until ?? 0),
    )
    const { graph, mappings } = graphOf(this.bench.state.hot(assetDefinitions).all())
    const events = tickEvents({
      ...{ definition, tick, cause: 'catch_up', clockTurn: 0, open: new Set(), requestRun: simulatedRequest },
      at: { graph, partitions: new GraphPartitions(mappings, { nowMs: tick, dynamicKeys: () => [] }) },
      asked: { tick_id: tickId(SCHEDULE, tick), requested_by: 'ana', skipped_in: span?.tick_id ?? null },
    })
    return () => {
      for (const { definition: event, payload } of events ?? []) this.tell(event, payload as Record<string, unknown>)
    }
  }

  /** Every unfinished run fails. */
  failRuns(): void {
    for (const run of this.runs()) if (run.state === 'PENDING') this.failRun(run)
  }

  failRun({ run_id }: Pick<RunRow, 'run_id'>): void {
    const plan = { run_id, plan_id: `plan-${run_id}`, graph_version: 'g1', part: 0, parts: 1, tasks: [] }
    this.tell(PlanCreated, { ...plan, error: 'it cannot be planned' })
  }

  /** The clock of the running server is set. */
  jump(ms: number): void {
    this.now += ms
    if (this.#controller !== undefined) this.#showAll(this.#controller)
    this.run(0)
  }

  /** Time passes, and no server runs. */
  wait(ms: number): void {
    this.#controller = undefined
    this.now += ms
    // The next process knows nothing of the ids of this one, which may be larger.
    this.#processes = (this.#processes % 250) + 1
    this.#writer = new SimulatedWriter(this.#processes, 0, () => this.now)
  }

  /** A server starts, and runs for so long. */
  run(ms: number): void {
    const controller = this.#controller ?? this.#start()
    const until = this.now + ms
    for (;;) {
      this.#decide(controller)
      const next = controller.wakeAt?.()
      this.#prepare(controller, next)
      if (next === undefined || next > until) break
      this.now = Math.max(this.now, next)
    }
    this.now = until
    this.#decide(controller)
  }

  #start(): Controller {
    const controller = scheduleController({ requestRun: simulatedRequest, conditions: this.conditions, manyDue: 1 })
    for (const table of controller.watches) this.bench.state.hotTable(table).watch()
    this.#showAll(controller)
    this.#controller = controller
    return controller
  }

  #showAll(controller: Controller): void {
    for (const table of controller.watches) {
      for (const row of this.bench.state.hotTable(table).all()) controller.observe(table, row)
    }
  }

  /** Once for each moment: what changes between then and the moment makes it useless. */
  #prepare(controller: Controller, now = this.now): void {
    if (now <= this.now || now === this.#preparedFor) return
    this.#preparedFor = now
    controller.prepare?.({ rows: this.bench.state, now, lagMs: 0 })
  }

  /** As the loop does it: shows what changed, folds what is decided, until nothing more follows. */
  #decide(controller: Controller): void {
    for (let rounds = 0; ; rounds++) {
      assert(rounds < 20, 'the controller does not come to an end')
      for (const table of controller.watches) {
        for (const row of this.bench.state.hotTable(table).takeChanged()) controller.observe(table, row)
      }
      const events = controller.decide({ rows: this.bench.state, now: this.now, lagMs: 0 }).flat()
      if (events.length === 0) return
      for (const { definition, payload } of events) {
        const parsed = definition.parse(payload)
        assert(parsed.success, `${definition.type} is not valid`)
        const written = this.#writer.write(definition, payload as Record<string, unknown>)
        this.#written.set(written.event_id, this.#written.size)
        const verdict = this.bench.foldOne(written)
        assert(verdict.kind !== 'parked', `${definition.type} is parked`)
      }
    }
  }

  runs(): RunRow[] {
    const all = (this.bench.rows()[runs.name] ?? []) as RunRow[]
    return all.sort((a, b) => (a.run_key < b.run_key ? -1 : 1))
  }

  state(): Readonly<ScheduleStateRow> {
    const state = this.bench.state.hot(scheduleState).get(SCHEDULE)
    assert(state !== undefined, 'the schedule was defined')
    return state
  }

  ticks(): RowOf<typeof scheduleTicks.columns>[] {
    return (this.bench.rows()[scheduleTicks.name] ?? []) as RowOf<typeof scheduleTicks.columns>[]
  }

  triggered(): number[] {
    return this.ticks().flatMap((tick) => (tick.status === 'triggered' ? [tick.scheduled_for ?? 0] : []))
  }

  /** Every tick that is recorded as skipped, spans written out by the definition they name without what was triggered before. */
  skipped(): Set<number> {
    const all = new Set<number>()
    const recorded = this.ticks()
    const writtenAt = (tick: (typeof recorded)[number]): number => this.#written.get(tick.tick_event_id ?? '') ?? 0
    const triggered = new Map(recorded.flatMap((tick) => (tick.status === 'triggered' ? [[tick.scheduled_for, tick]] : [])))
    for (const tick of recorded) {
      if (tick.status !== 'skipped') continue
      assert(tick.reason !== null, 'a skipped tick says why')
      const first = tick.scheduled_for ?? 0
      const ticks = this.#ticksOf(tick.definition_version ?? '', first, tick.scheduled_until ?? first).filter((one) => {
        const run = triggered.get(one)
        return run === undefined || writtenAt(run) > writtenAt(tick)
      })
      assert(ticks.length === tick.tick_count, `a span of ${tick.tick_count} ticks has ${ticks.length}`)
      for (const one of ticks) all.add(one)
    }
    return all
  }

  readonly #cadences = new Map<string, Readonly<ScheduleRow>>()

  #ticksOf(version: string, first: number, last: number): number[] {
    const cadence = this.#cadences.get(version)
    assert(cadence !== undefined, `no definition ${version}`)
    return ticksBetween(cadence, first - 1, last)
  }
}

/** What a schedule says of its moments. */
export interface Moments {
  readonly cron_expressions: readonly string[]
  readonly timezone: string
  readonly start_at: number | null
  readonly end_at: number | null
}

/** The ticks after one instant and not after another, found one by one: slow, and too simple to be wrong in the way that a cadence may be. */
export function ticksBetween(
  { cron_expressions, timezone, start_at, end_at }: Moments,
  after: number,
  until: number,
): number[] {
  const found = new Set<number>()
  for (const expression of cron_expressions) {
    for (const tick of ticksFrom(parseCron(expression), timezone, Math.max(after + 1, start_at ?? after))) {
      if (tick > Math.min(until, end_at ?? until)) break
      found.add(tick)
    }
  }
  return [...found].sort((a, b) => a - b)
}
