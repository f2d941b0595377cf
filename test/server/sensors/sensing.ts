import type { Delivery, DeliveryAnswer } from '../../../src/contract/delivery.ts'
import type { DispatchEnvelope } from '../../../src/contract/dispatch.ts'
import { type ProjectManifestInput, projectManifest } from '../../../src/contract/project-manifest.ts'
import type { SensorDefinitionInput } from '../../../src/contract/sensor.ts'
import { runKeyIndex } from '../../../src/domain/runs/run-key-index.table.ts'
import { sensorDefinitions } from '../../../src/domain/sensors/sensor-definitions.table.ts'
import { sensorEvals } from '../../../src/domain/sensors/sensor-evals.table.ts'
import { sensorMessages } from '../../../src/domain/sensors/sensor-messages.table.ts'
import { sensorState } from '../../../src/domain/sensors/sensor-state.table.ts'
import { Paths } from '../../../src/engine/paths.ts'
import { assert } from '../../../src/lib/assert.ts'
import { sha256 } from '../../../src/lib/hash.ts'
import type { Columns } from '../../../src/model/column.ts'
import type { Envelope } from '../../../src/model/envelope.ts'
import { type EventDefinition, newEvent } from '../../../src/model/event.ts'
import type { RowOf, Table } from '../../../src/model/table.ts'
import type { AlarmClock } from '../../../src/ports/clock.ts'
import { knownRows } from '../../../src/server/leader/known-rows.ts'
import { loadSecrets } from '../../../src/server/leader/load-secrets.ts'
import { SensorHub } from '../../../src/server/leader/sensors/sensor-hub.ts'
import { Server, type ServerOptions } from '../../../src/server/server.ts'
import { coldRowsOf } from '../../../src/server/workspace/knowledge.ts'
import { countingStore, type StoreRequest } from '../../../src/testing/counting-store.ts'
import { memoryComponents } from '../../../src/testing/memory-components.ts'
import { simulatedRequest } from '../../../src/testing/schedule-simulation.ts'
import { ScriptedEvaluator } from '../../../src/testing/scripted-evaluator.ts'
import { ScriptedLease } from '../../../src/testing/scripted-lease.ts'
import { type Scripted, ScriptedWorkers } from '../../../src/testing/scripted-workers.ts'
import { VirtualClock } from '../../../src/testing/virtual-clock.ts'
import { interceptedStore } from '../../engine/intercepted-store.ts'

export const hook = { type: 'webhook', path: 'orders', verify: 'none' } as const
export const every = (every_ms: number) => ({ type: 'poll', every_ms }) as const
/** What code returns that asks for one run of orders. */
export const oneRun = (more: object = {}) =>
  ({ outcome: 'requests', runs: [{ asset_selection: ['orders'], ...more }] }) as const
/** Everything stays in memory, where a test can look at all rows. */
const NO_BASES = { limits: { max_count: 1e9, max_rows: 1e9, max_segments: 1e9, max_age_ms: 1e15 } }

type Assets = ProjectManifestInput['assets']

const ORDERS: Assets = [{ asset_key: 'orders', kind: 'asset' }]

interface Options extends Pick<ServerOptions, 'compaction'> {
  /** The assets of the project; orders alone unless told. */
  readonly assets?: Assets
}

/** A whole server on virtual time, whose sensors are evaluated by a script, and that can be killed and started again. */
export class Sensing {
  readonly clock = new VirtualClock()
  readonly memory = memoryComponents(this.clock)
  readonly store = countingStore(this.memory.store)
  readonly paths = new Paths(this.memory.scope)
  readonly evaluator = new ScriptedEvaluator(this.clock)
  readonly troubles: unknown[] = []
  /** Called before each request to the store is carried out. */
  before: (request: StoreRequest) => Promise<void> | void = () => undefined
  /** How attempts go. */
  workers: (envelope: DispatchEnvelope) => Scripted = () => ({})
  /** Counts from the next start on. */
  automation = true
  lease = new ScriptedLease()
  server!: Server
  readonly #options: Pick<ServerOptions, 'compaction'>
  readonly #assets: Assets
  #project: ProjectManifestInput
  #starts = 0
  #alive = new AbortController()

  private constructor(sensors: readonly SensorDefinitionInput[], { assets = ORDERS, ...options }: Options) {
    this.#options = options
    this.#assets = assets
    this.#project = projectOf(sensors, assets)
  }

  static async open(sensors: readonly SensorDefinitionInput[], options: Options = {}): Promise<Sensing> {
    const sensing = new Sensing(sensors, options)
    await sensing.start()
    return sensing
  }

  /** Ends the process as a kill does, whatever it is doing. */
  kill(): void {
    this.#alive.abort()
    this.lease.lose({ notifies: false })
  }

  /** Opens another server on what is durable; one that was not killed goes on, like a process that was frozen and is deposed. */
  async start(): Promise<void> {
    this.lease.lose({ notifies: false })
    this.#starts += 1
    this.#alive = new AbortController()
    const { signal } = this.#alive
    this.lease = new ScriptedLease(this.#starts)
    const clock = mortal(this.clock, signal)
    const store = interceptedStore(this.store, async (request) => {
      if (signal.aborted) await new Promise(() => undefined)
      await this.before(request)
      if (signal.aborted) await new Promise(() => undefined)
    })
    const components = { ...this.memory, clock, store }
    const { secrets } = await loadSecrets(this.memory)
    this.server = await Server.open({
      components,
      lease: this.lease,
      secrets,
      instance: `server-${this.#starts}`,
      workers: new ScriptedWorkers(clock, (envelope) => this.workers(envelope)),
      concurrency: () => 8,
      automation: this.automation,
      evaluator: { evaluate: async (request) => await beforeDeath(this.evaluator.evaluate(request), signal) },
      compaction: NO_BASES,
      onTrouble: (error) => this.troubles.push(error),
      ...this.#options,
    })
    await this.load()
  }

  /** Loads the project, with other sensors if some are given. */
  async load(sensors?: readonly SensorDefinitionInput[]): Promise<void> {
    if (sensors !== undefined) this.#project = projectOf(sensors, this.#assets)
    await this.server.define(projectManifest.parse(this.#project))
  }

  get hub(): SensorHub {
    assert(this.server.sensors !== undefined, 'the server evaluates sensors')
    return this.server.sensors
  }

  /** Another process that believes that it leads, with the same rows before it. */
  twin(): SensorHub {
    const { orchestrator } = this.server
    const hub = new SensorHub({
      clock: this.clock,
      automation: true,
      evaluator: this.evaluator,
      known: knownRows(() => orchestrator.readable),
      graph: () => orchestrator.graph,
      requestRun: simulatedRequest,
      mintId: this.memory.ulid,
      submit: (events) => orchestrator.submit(events),
      durable: () => orchestrator.durable(),
      checkLeads: async () => undefined,
      onTrouble: (error) => this.troubles.push(error),
    })
    hub.projectKnown()
    return hub
  }

  idOf(name = 'inbox'): string {
    const row = [...this.#state.hot(sensorDefinitions).all()].find((one) => one.sensor_name === name)
    assert(row !== undefined, `${name} is on record`)
    return row.sensor_id
  }

  delivery(messageId: string, data: unknown = {}, more: Partial<Delivery> = {}): Delivery {
    const body = JSON.stringify(data)
    const message = { id: messageId, data, attributes: {}, published_at: null }
    return { sensor_id: this.idOf(), message, body_hash: sha256(body), body_size: body.length, ...more }
  }

  deliver(messageId: string, data: unknown = {}, more: Partial<Delivery> = {}): Promise<DeliveryAnswer> {
    return this.hub.deliver(this.delivery(messageId, data, more))
  }

  /** The answer to a delivery that takes time. */
  async answered(messageId: string, data: unknown = {}): Promise<DeliveryAnswer> {
    return await this.soon(this.deliver(messageId, data))
  }

  /** Lets time pass until it is known. */
  async soon<T>(work: Promise<T>): Promise<T> {
    const settled = { is: false }
    const done = (): void => {
      settled.is = true
    }
    work.then(done, done)
    for (let i = 0; i < 2_000 && !settled.is; i++) await this.clock.advance(50)
    assert(settled.is, 'it ends within a while')
    return await work
  }

  async write<P, I>(definition: EventDefinition<P, I>, payload: I): Promise<void> {
    await this.soon(this.server.orchestrator.submit([newEvent(definition, payload)]))
  }

  state(name = 'inbox') {
    return this.#state.hot(sensorState).get(this.idOf(name))
  }

  evals = () => this.#recent(sensorEvals)
  messages = () => this.#recent(sensorMessages)
  /** The ids of all runs that sensors asked for. */
  runs = () => this.#recent(runKeyIndex).map(({ run_id }) => run_id)

  /** The events of every segment in the ledger, oldest first. */
  async segments(): Promise<Envelope[][]> {
    const found: Envelope[][] = []
    for await (const { path } of this.memory.store.list(this.paths.ledger)) {
      const bytes = await this.memory.store.get(path)
      found.push((JSON.parse(new TextDecoder().decode(bytes)) as { events: Envelope[] }).events)
    }
    return found
  }

  /** How many segments were written since the count began. */
  get writes(): number {
    return this.store.pathsUnder(this.paths.ledger, 'create').length
  }

  get #state() {
    return this.server.orchestrator.readable.state
  }

  #recent<C extends Columns>(table: Table<C>): RowOf<C>[] {
    return [...coldRowsOf(this.server.orchestrator.readable, table).recent()]
  }
}

function projectOf(sensors: readonly SensorDefinitionInput[], assets: Assets): ProjectManifestInput {
  return { project: 'sensing', assets, sensors: sensors.map((one) => ({ ...one })) }
}

/** A clock that rings for nobody who is dead. */
const mortal = (clock: AlarmClock, dead: AbortSignal): AlarmClock => ({
  now: () => clock.now(),
  monotonic: () => clock.monotonic(),
  sleep: (ms) => new Promise((resolve) => clock.after(ms, () => dead.aborted || resolve())),
  after: (ms, call) => clock.after(ms, () => dead.aborted || call()),
})

async function beforeDeath<T>(work: Promise<T>, dead: AbortSignal): Promise<T> {
  const result = await work
  return dead.aborted ? await new Promise(() => undefined) : result
}
