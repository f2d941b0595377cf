import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { MemoryTaskQueue } from '../../src/adapters/memory/task-queue.ts'
import type { DispatchEnvelope } from '../../src/contract/dispatch.ts'
import { type AssetDefinitionInput, assetDefinition } from '../../src/contract/project-manifest.ts'
import { AssetsDefined } from '../../src/domain/assets/assets-defined.event.ts'
import { dispatchOutbox } from '../../src/domain/dispatch/dispatch-outbox.table.ts'
import { orchestration } from '../../src/domain/index.ts'
import { RunCancelRequested } from '../../src/domain/runs/run-cancel-requested.event.ts'
import { runs } from '../../src/domain/runs/runs.table.ts'
import { taskAttempts } from '../../src/domain/tasks/task-attempts.table.ts'
import { tasks } from '../../src/domain/tasks/tasks.table.ts'
import { verify } from '../../src/engine/check/verify.ts'
import type { Scope } from '../../src/engine/paths.ts'
import { newEvent } from '../../src/model/event.ts'
import type { AlarmClock } from '../../src/ports/clock.ts'
import type { Notifier } from '../../src/ports/notifier.ts'
import type { ObjectStore } from '../../src/ports/object-store.ts'
import type { Components } from '../../src/server/components.ts'
import { Orchestrator } from '../../src/server/leader/orchestrator.ts'
import type { OrchestratorOptions } from '../../src/server/leader/orchestrator-options.ts'
import { runRequested } from '../../src/server/workspace/requests.ts'
import { memoryComponents } from '../../src/testing/memory-components.ts'
import { ScriptedLease } from '../../src/testing/scripted-lease.ts'
import { type Scripted, ScriptedWorkers } from '../../src/testing/scripted-workers.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

export const scope: Scope = { tenant_id: 'acme', workspace_id: 'analytics' }
const secret = { id: 'secret-1', value: 'not a secret' }

/** Assets by key, with what each depends on. */
export type Graph = Readonly<Record<string, readonly string[] | Partial<AssetDefinitionInput>>>

export interface WorldOptions {
  readonly store?: ObjectStore
  readonly script?: (envelope: DispatchEnvelope) => Scripted
  readonly capacity?: number
  readonly options?: Partial<OrchestratorOptions>
  /** One that hears everything, unless told otherwise: nobody else writes here. */
  readonly notifier?: Notifier
}

const allHearing: Notifier = {
  announce: () => undefined,
  listen: async () => ({ missesNothing: true, close: () => undefined }),
}

/** A whole orchestrator on virtual time and in memory, with workers that follow a script. */
export class World {
  readonly clock = new VirtualClock()
  readonly store: ObjectStore
  readonly components: Components
  readonly #given: WorldOptions
  #instances = 0
  lease = new ScriptedLease()
  #alive = new AbortController()
  workers: ScriptedWorkers
  orchestrator!: Orchestrator

  private constructor(given: WorldOptions) {
    this.#given = given
    const memory = memoryComponents(this.clock)
    this.components = { ...memory, store: given.store ?? memory.store, notifier: given.notifier ?? allHearing }
    this.store = this.components.store
    this.workers = new ScriptedWorkers(this.clock, given.script, given.capacity)
  }

  static async open(given: WorldOptions = {}): Promise<World> {
    const world = new World(given)
    await world.restart()
    return world
  }

  /** Ends the orchestrator as a kill does, in the middle of whatever it does, and opens another after a while. */
  async crash(awayMs = 0): Promise<void> {
    this.#alive.abort()
    await this.clock.advance(awayMs)
    await this.restart()
  }

  /** Opens a new orchestrator on what is durable; the old one, if any, goes on like a process that was only frozen. */
  async restart(): Promise<void> {
    this.workers = new ScriptedWorkers(this.clock, this.#given.script, this.#given.capacity)
    this.#instances += 1
    this.#alive = new AbortController()
    this.lease.lose({ notifies: false })
    this.lease = new ScriptedLease(this.#instances)
    this.orchestrator = await Orchestrator.open({
      components: { ...this.components, queue: new MemoryTaskQueue(this.clock), clock: mortal(this.clock, this.#alive.signal) },
      lease: this.lease,
      instance: `instance-${this.#instances}`,
      workers: this.workers,
      concurrency: () => this.#given.capacity ?? 8,
      ...this.#given.options,
    })
  }

  async define(graph: Graph, pools: Readonly<Record<string, number | null>> = {}): Promise<void> {
    const assets = Object.entries(graph).map(([asset_key, given]) => {
      const partial = Array.isArray(given) ? { deps: given.map((key) => ({ asset_key: key })) } : given
      const definition = assetDefinition.parse({ asset_key, kind: 'asset', ...partial })
      return { asset_key, asset_id: `id-${asset_key}`, definition }
    })
    await this.orchestrator.submit([
      newEvent(AssetsDefined, {
        graph_version: 'g1',
        assets,
        pools: Object.entries(pools).map(([pool, slots]) => ({ pool, slots })),
      }),
    ])
  }

  async request(
    name: string,
    selection = '*',
    { partitions, ...options }: { partitions?: readonly string[]; priority?: number; traceparent?: string } = {},
  ): Promise<string> {
    const { run_id, event } = runRequested(scope, secret, {
      run_key: `manual:${name}`,
      asset_selection: [selection],
      partition_selection: partitions ? [...partitions] : null,
      source: { type: 'manual', user_id: 'tester', request_id: name },
      ...options,
    })
    await this.orchestrator.submit([event])
    return run_id
  }

  async cancel(runId: string): Promise<void> {
    await this.orchestrator.submit([newEvent(RunCancelRequested, { run_id: runId, requested_by: 'tester' })])
  }

  run(runId: string) {
    return this.#rows.hot(runs).get(runId)
  }

  task(runId: string, key: string) {
    return this.#rows.hot(tasks).get(runId, key)
  }

  dispatch(runId: string, key: string, attempt = 1) {
    return this.#rows.hot(dispatchOutbox).get(runId, key, attempt)
  }

  attempts(runId: string, key: string) {
    return [...this.#rows.hot(taskAttempts).under(runId, key)]
  }

  states(runId: string): Record<string, string> {
    return Object.fromEntries([...this.#rows.hot(tasks).under(runId)].map((task) => [task.task_key, task.state]))
  }

  get #rows() {
    return this.orchestrator.loop.compactor.state
  }

  async problems(): Promise<readonly unknown[]> {
    await this.orchestrator.publish()
    const { problems } = await verify({ store: this.store, scope, registry: orchestration, scratch: memoryStore() })
    return problems
  }
}

/** A clock that rings for nobody who is dead: without alarms a process does nothing on its own. */
const mortal = (clock: AlarmClock, alive: AbortSignal): AlarmClock => ({
  now: () => clock.now(),
  monotonic: () => clock.monotonic(),
  sleep: (ms) => new Promise((resolve) => clock.after(ms, () => alive.aborted || resolve())),
  after: (ms, call) => clock.after(ms, () => alive.aborted || call()),
})

export const failure = (overrides: object = {}) => ({
  outcome: 'FAILED' as const,
  error: { category: 'user' as const, message: 'it broke', retryable: true, ...overrides },
})
