import { RefusedCalls } from '../api/access/refused-calls.ts'
import { type AppOptions, localApp, routesOf } from '../api/app.ts'
import { hookRoutes } from '../api/hooks/hook-routes.ts'
import { probeRoutes } from '../api/probes/probe-routes.ts'
import type { QueryApi } from '../api/query/query-contract.ts'
import { KeptAnswers } from '../api/request/kept-answers.ts'
import type { Route } from '../api/routing/route.ts'
import type { Evaluator } from '../contract/evaluation.ts'
import type { ProjectManifest } from '../contract/project-manifest.ts'
import { AssetsDefined } from '../domain/assets/assets-defined.event.ts'
import type { RequestRun } from '../domain/automation/request-run.ts'
import { scheduleTicks } from '../domain/schedules/schedule-ticks.table.ts'
import { checkLeads, leads } from '../engine/ledger/leading.ts'
import { newEvent } from '../model/event.ts'
import type { WorkspaceSecrets } from '../ports/secrets.ts'
import { Answering } from './answering.ts'
import type { Components } from './components.ts'
import { FrontDoor, type Reach } from './front-door.ts'
import { damageFound } from './leader/damage-found.ts'
import { HeldWorkers } from './leader/dispatch/held-workers.ts'
import type { Post } from './leader/dispatch/push.ts'
import { RemoteWorkers } from './leader/dispatch/remote-workers.ts'
import { evaluatedConditions } from './leader/evaluated-conditions.ts'
import { EventTail } from './leader/events/event-tail.ts'
import { FreshReads } from './leader/events/fresh-reads.ts'
import { Feed } from './leader/feed.ts'
import { coldRowsOf, knownRows } from './leader/known-rows.ts'
import { maskedEvaluator } from './leader/masked-evaluator.ts'
import { Orchestrator } from './leader/orchestrator.ts'
import type { OrchestratorOptions } from './leader/orchestrator-options.ts'
import { DiskWatch } from './leader/retention/disk-watch.ts'
import { ValueRetention } from './leader/retention/retention.ts'
import { SensorHub } from './leader/sensors/sensor-hub.ts'
import type { OrchestratorSettings } from './leader/settings.ts'
import { ServerMetrics } from './metrics/server-metrics.ts'
import { Readiness } from './readiness.ts'
import { WatchedStore } from './watched-store.ts'
import { declaredAutomation, declaredParts, NO_AUTOMATION } from './workspace/declare.ts'
import { Hooks } from './workspace/hooks.ts'
import { knowledgeOf } from './workspace/knowledge.ts'
import { runRequested } from './workspace/requests.ts'
import { RunReader } from './workspace/run-reader.ts'
import { workspaceApi } from './workspace/workspace.ts'

export interface ServerOptions
  extends Pick<
    OrchestratorOptions,
    'components' | 'lease' | 'instance' | 'workers' | 'compaction' | 'onTrouble' | 'onStopped'
  > {
  readonly secrets: WorkspaceSecrets
  /** Called when a server wants to lead in place of this process. Absent for a server, which never gives way. */
  readonly onHandOver?: () => void
  /** True if schedules tick and sensors are evaluated here. */
  readonly automation?: boolean
  /** Evaluates the code of sensors and the conditions of schedules. Without one no sensor is evaluated, and ticks with a condition fail. */
  readonly evaluator?: Evaluator | undefined
  /** The number of attempts that may run here at a time. */
  readonly concurrency: () => number
  readonly settings?: () => OrchestratorSettings
  /** The environment of the process, in which the secrets of sensors are. */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** Where it is reached from; this machine alone if absent. */
  readonly reach?: Reach
  /** Answers SQL; nobody does if absent. */
  readonly query?: QueryApi | undefined
  /** Pushes work to a queue; over HTTP if absent. */
  readonly post?: Post
  /** What is counted here; the process may have added what it knows of itself. */
  readonly metrics?: ServerMetrics
}

/** How many definitions a load of the project changed: made, changed, renamed, disabled or removed. */
export interface Changed {
  readonly assets: number
  readonly schedules: number
  readonly sensors: number
}

/** A store that owes an answer for so long is down. Longer than a process is ever too busy to hear it. */
const SILENT_MS = 2_000

/**
 * A server without the machine it runs on: the leader, the workspace that answers questions and takes commands, and the routes
 * to both. It opens no port, starts no process and sets timers only by its clock, so a test can run it on virtual time.
 */
export class Server {
  readonly feed: Feed
  readonly api: ReturnType<typeof workspaceApi>
  readonly orchestrator: Orchestrator
  /** The sensors of the workspace. */
  readonly sensors: SensorHub | undefined
  /** What senders of messages reach, and how often they were refused. */
  readonly hooks: Hooks
  /** Calls that were refused: how often, and why. */
  readonly refused: RefusedCalls
  /** Who gets in. */
  readonly door: FrontDoor
  /** Every route that it answers. */
  readonly routes: readonly Route[]
  readonly #components: Components
  readonly #workers: HeldWorkers
  readonly #remoteWorkers: RemoteWorkers
  readonly #answering: Answering
  readonly #automation: boolean
  readonly #retention: ValueRetention | undefined
  readonly #disk: DiskWatch | undefined
  readonly #metrics: ServerMetrics
  #isProjectLoaded = false
  #isDraining = false
  #url: string | undefined

  private constructor(parts: {
    options: ServerOptions
    watched: WatchedStore
    orchestrator: Orchestrator
    feed: Feed
    workers: HeldWorkers
    sensors: SensorHub | undefined
    evaluator: Evaluator | undefined
    retention: ValueRetention | undefined
    metrics: ServerMetrics
    tail: EventTail
  }) {
    const { components, lease, secrets, instance, onHandOver } = parts.options
    this.#components = components
    this.#automation = parts.options.automation ?? false
    this.#workers = parts.workers
    this.orchestrator = parts.orchestrator
    this.feed = parts.feed
    this.sensors = parts.sensors
    this.#retention = parts.retention
    this.#metrics = parts.metrics
    const { watched } = parts
    this.#metrics.read(this.orchestrator, lease)
    const { room } = components
    // A command that leads for a while is over before a disk is full.
    if (room !== undefined && onHandOver === undefined)
      this.#disk = new DiskWatch(components.clock, room, (error) => parts.options.onTrouble?.(error))
    this.#disk?.start()
    const deliveries = parts.sensors && { deliveries: parts.sensors }
    const { logs, remote } = parts.orchestrator
    const known = knowledgeOf(components, parts.orchestrator)
    const { environment = {}, onTrouble } = parts.options
    components.onStoreTrouble?.((error) => onTrouble?.(error))
    this.refused = new RefusedCalls(components.clock, (error) => onTrouble?.(error))
    this.hooks = new Hooks(known, { environment, deliveries: () => parts.sensors, url: () => this.#url, onTrouble })
    this.api = workspaceApi(known, {
      runIds: () => secrets.run_ids,
      live: { feed: parts.feed, logs },
      query: parts.options.query,
      happening: { tail: parts.tail, clock: components.clock },
      onDamage: (path, message) => onTrouble?.(damageFound({ path, message })),
      ...deliveries,
      senders: this.hooks,
      // A command that leads for a moment is no server, and lets nothing tick in any case.
      ...(onHandOver === undefined && { automation: this.#automation }),
      outage: () => parts.evaluator?.outage?.()?.reason,
      room: components.room,
    })
    this.#remoteWorkers = new RemoteWorkers({ remote, secrets, scope: components.scope, clock: components.clock })
    const readiness = new Readiness({
      components,
      orchestrator: this.orchestrator,
      lease,
      isProjectLoaded: () => this.#isProjectLoaded,
      isStoreSilent: () => watched.silentMs >= SILENT_MS,
      isDraining: () => this.#isDraining,
    })
    this.door = new FrontDoor({ components, secrets, reach: parts.options.reach ?? {}, onTrouble })
    const { access, tokens, limits, login, own, reach } = this.door
    const options: AppOptions = {
      ...this.api,
      access,
      answers: new KeptAnswers(components),
      reads: new FreshReads(this.orchestrator, parts.tail, components.clock),
      tokens,
      limits,
      login,
      refused: this.refused,
      instance,
      own: () => own,
      proxies: () => reach.proxies,
      onTrouble,
      ...(onHandOver !== undefined && { handOver: onHandOver }),
      workers: this.#remoteWorkers.routes,
      hooks: hookRoutes(this.hooks),
      probes: probeRoutes({ unready: () => readiness.unready(), metrics: () => this.#metrics.registry.text() }),
    }
    this.routes = routesOf(options)
    const { orchestrator, metrics } = parts
    const { clock } = components
    this.#answering = new Answering({ app: localApp(options), clock, store: watched, orchestrator, lease, metrics, onTrouble })
  }

  static async open({ metrics = new ServerMetrics(), ...asked }: ServerOptions): Promise<Server> {
    const watched = new WatchedStore(metrics.counting(asked.components.store), () => asked.components.clock.monotonic())
    const components = { ...asked.components, store: watched.store }
    const options = { ...asked, components }
    const { post, secrets, onHandOver, automation = false, environment = {}, ...given } = options
    const rows = () => orchestrator.readable.state
    const evaluator = options.evaluator && maskedEvaluator(options.evaluator, { rows, environment })
    const workers = new HeldWorkers(options.workers, () => leads(options.lease))
    const feed: Feed = new Feed({
      rows: () => orchestrator.loop.compactor.state,
      durable: () => orchestrator.loop.durable(),
      recentTicks: () => coldRowsOf(orchestrator.loop.compactor, scheduleTicks).recent(),
      now: () => components.clock.now(),
    })
    const requestRun: RequestRun = (request) => runRequested(components.scope, secrets.run_ids, request)
    const sensors =
      evaluator &&
      new SensorHub({
        clock: components.clock,
        automation,
        evaluator,
        known: knownRows(() => orchestrator.readable),
        graph: () => orchestrator.graph,
        requestRun,
        mintId: components.ulid,
        submit: (events) => orchestrator.submit(events),
        durable: () => orchestrator.durable(),
        checkLeads: () => checkLeads(options.lease),
        onEvaluated: (evaluated) => {
          metrics.facts.evaluated(evaluated)
          feed.evaluated(evaluated)
        },
        onTrouble: (error) => options.onTrouble?.(error),
      })
    // A command that leads for a while removes nothing that it was not asked to remove.
    const retention =
      onHandOver === undefined
        ? new ValueRetention({
            clock: components.clock,
            known: () => knowledgeOf(components, orchestrator),
            checkLeads: () => checkLeads(options.lease),
            onTrouble: (error) => options.onTrouble?.(error),
            ...components.retentionTiming,
          })
        : undefined
    const tail = new EventTail()
    const reader = new RunReader(knownRows(() => orchestrator.readable))
    const orchestrator: Orchestrator = await Orchestrator.open({
      ...given,
      components,
      workers,
      carries: onHandOver === undefined ? 'everything' : 'what it is asked for',
      // A command that leads for a while does only what it was asked for.
      ...(onHandOver === undefined && { requestRun, automation }),
      conditions: evaluatedConditions({
        evaluator,
        mintId: components.ulid,
        onAnswer: () => orchestrator.loop.nudge(),
      }),
      measure: { ...metrics.measure, onEvents: (events) => tail.add(events) },
      reactors: [...metrics.facts.reactors, ...feed.reactors, ...(sensors?.reactors ?? []), ...(retention?.reactors ?? [])],
      onStopped: (error) => {
        sensors?.stop()
        retention?.stop()
        options.onStopped?.(error)
      },
      onOpened: (opened, newest) => {
        metrics.facts.opened(opened.state)
        feed.opened(opened.state, coldRowsOf(opened, scheduleTicks).recent())
        tail.opened(newest)
      },
      remote: { history: (attempt) => reader.endOf(attempt), ...(post !== undefined && { post }) },
    })
    return new Server({ options, watched, orchestrator, feed, workers, sensors, evaluator, retention, metrics, tail })
  }

  /** Answers a request. A process that no longer leads throws its answer away and refuses. */
  get fetch(): Answering['fetch'] {
    return this.#answering.fetch
  }

  /**
   * Begins nothing more, and waits for what runs here until the grace is over. Meanwhile questions are answered, and requests for runs are
   * recorded for the next start; messages for sensors are refused, and come again.
   */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true
    this.sensors?.drain()
    this.#retention?.stop()
    await this.orchestrator.drain(graceMs, () => this.sensors?.running ?? 0)
  }

  /** Refuses new requests, and waits a short while until the others are answered. */
  async leave(graceMs: number): Promise<void> {
    await this.#answering.leave(graceMs)
  }

  /** Remote workers reach this server at this address from now on. */
  reachableAt(url: string): void {
    this.#url = url
    this.#remoteWorkers.reachableAt(url)
  }

  /** Records what changed in the project, and lets its tasks begin. */
  async define(manifest: ProjectManifest): Promise<Changed> {
    const { state } = this.orchestrator.readable
    const { clock, ulid: mintId } = this.#components
    const parts = declaredParts(state, manifest, clock.now(), mintId)
    const { schedules, sensors } = this.#automation ? declaredAutomation(state, manifest, mintId) : NO_AUTOMATION
    const events = [...parts.map((part) => newEvent(AssetsDefined, part)), ...schedules, ...sensors]
    if (events.length > 0) await this.orchestrator.submit(events)
    this.door.use(manifest.server)
    this.#isProjectLoaded = true
    this.orchestrator.projectKnown()
    this.sensors?.projectKnown()
    this.#retention?.projectKnown()
    if (this.#automation) this.hooks.tellMissingSecrets()
    this.#workers.release()
    this.#remoteWorkers.useQueues(manifest.queues)
    const assets = parts.reduce((sum, part) => sum + part.assets.length, 0)
    return { assets, schedules: schedules.length, sensors: sensors.length }
  }

  /** Stops: nothing begins any more, and everything accepted is durable. The owner of the workers ends them. */
  async close(): Promise<void> {
    this.#retention?.stop()
    this.#disk?.stop()
    this.refused.stop()
    await this.sensors?.close()
    await this.orchestrator.close()
  }
}
