import { RefusedCalls } from '../api/access/refused-calls.ts'
import { type AppOptions, localApp, routesOf } from '../api/app.ts'
import { hookRoutes } from '../api/hooks/hook-routes.ts'
import { probeRoutes } from '../api/probes/probe-routes.ts'
import type { Route } from '../api/routing/route.ts'
import type { WorkspaceApi } from '../api/workspace-contract.ts'
import type { ProjectManifest } from '../contract/project-manifest.ts'
import { AssetsDefined } from '../domain/assets/assets-defined.event.ts'
import { AssetGraph } from '../domain/assets/graph.ts'
import { declaredSchedules } from '../domain/schedules/declared-schedules.ts'
import { scheduleDefinitions } from '../domain/schedules/schedule-definitions.table.ts'
import { declaredSensors } from '../domain/sensors/declared-sensors.ts'
import { sensorDefinitions } from '../domain/sensors/sensor-definitions.table.ts'
import { newEvent } from '../model/event.ts'
import type { Rows } from '../model/rows.ts'
import { Answering } from './answering.ts'
import type { Components } from './components.ts'
import { FrontDoor } from './front-door.ts'
import type { Alerting } from './leader/alerts/alerting.ts'
import type { HeldWorkers } from './leader/dispatch/held-workers.ts'
import { RemoteWorkers } from './leader/dispatch/remote-workers.ts'
import type { Feed } from './leader/feed.ts'
import type { Orchestrator } from './leader/orchestrator.ts'
import { DiskWatch } from './leader/retention/disk-watch.ts'
import type { ValueRetention } from './leader/retention/retention.ts'
import type { SensorHub } from './leader/sensors/sensor-hub.ts'
import type { ServerMetrics } from './metrics/server-metrics.ts'
import { Readiness } from './readiness.ts'
import { openParts, type ServerOptions, type ServerParts } from './server-parts.ts'
import type { Traces } from './traces/traces.ts'
import { declaredParts } from './workspace/declare.ts'
import { Hooks } from './workspace/hooks.ts'
import { knowledgeOf } from './workspace/knowledge.ts'
import { workspaceApi } from './workspace/workspace.ts'

export type { ServerOptions } from './server-parts.ts'

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
  readonly api: WorkspaceApi
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
  readonly #traces: Traces | undefined
  readonly #alerting: Alerting | undefined
  #isProjectLoaded = false
  #isDraining = false
  #url: string | undefined

  private constructor(parts: ServerParts) {
    const { components, lease, secrets, instance, onHandOver } = parts.options
    this.#components = components
    this.#automation = parts.options.automation ?? false
    this.#workers = parts.workers
    this.orchestrator = parts.orchestrator
    this.feed = parts.feed
    this.sensors = parts.sensors
    this.#retention = parts.retention
    this.#metrics = parts.metrics
    this.#traces = parts.traces
    this.#alerting = parts.alerting
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
      ...deliveries,
      senders: this.hooks,
      // A command that leads for a moment is no server, and lets nothing tick in any case.
      ...(onHandOver === undefined && { automation: this.#automation }),
      ...(parts.alerting && { alertTargets: () => parts.alerting?.targets() ?? [] }),
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

  static async open(options: ServerOptions): Promise<Server> {
    return new Server(await openParts(options))
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
    this.#alerting?.use(manifest)
    const { schedules, sensors } = this.#automation ? declaredAutomation(state, manifest, mintId) : NO_AUTOMATION
    const events = [...parts.map((part) => newEvent(AssetsDefined, part)), ...schedules, ...sensors]
    if (events.length > 0) await this.orchestrator.submit(events)
    this.door.use(manifest.server)
    this.#isProjectLoaded = true
    this.orchestrator.projectKnown()
    this.sensors?.projectKnown()
    this.#retention?.projectKnown()
    this.#alerting?.projectKnown()
    if (this.#automation) this.hooks.tellMissingSecrets()
    this.#workers.release()
    this.#remoteWorkers.useQueues(manifest.queues)
    const assets = parts.reduce((sum, part) => sum + part.assets.length, 0)
    return { assets, schedules: schedules.length, sensors: sensors.length }
  }

  /** Stops: nothing begins any more, and everything accepted is durable. The owner of the workers ends them. */
  async close(): Promise<void> {
    this.#retention?.stop()
    this.#alerting?.stop()
    this.#disk?.stop()
    this.refused.stop()
    await this.sensors?.close()
    await this.orchestrator.close()
    await this.#traces?.close()
  }
}

const NO_AUTOMATION = { schedules: [], sensors: [] }

function declaredAutomation(state: Rows, manifest: ProjectManifest, mintId: () => string) {
  const schedules = { declared: manifest.schedules, known: state.hot(scheduleDefinitions).all(), mintId }
  const graph = new AssetGraph(manifest.assets)
  const sensors = { declared: manifest.sensors, known: state.hot(sensorDefinitions).all(), mintId, graph }
  return { schedules: declaredSchedules(schedules), sensors: declaredSensors(sensors) }
}
