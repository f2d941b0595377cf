import type { Server as HttpServer } from 'node:http'
import { availableParallelism } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import type { WorkspaceApi } from '../../api/workspace-contract.ts'
import { type ProjectManifest, type ProjectProblem, projectManifest } from '../../contract/project-manifest.ts'
import type { ServerLimits } from '../../contract/server-settings.ts'
import { LOCAL_QUEUE } from '../../domain/dispatch/queue.ts'
import { lookOver } from '../../engine/check/look-over.ts'
import { Paths } from '../../engine/paths.ts'
import { assert } from '../../lib/assert.ts'
import { Mutex } from '../../lib/mutex.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'
import type { HeldLease } from '../../ports/lease.ts'
import { filesOf } from '../../sdk/project/command-files.ts'
import { applyEnvFiles } from '../../sdk/project/env-files.ts'
import { EvaluationPool } from '../../worker/pool/evaluation-pool.ts'
import { type Loaded, type LoadFailed, type WorkerCommand, WorkerPool } from '../../worker/pool/pool.ts'
import type { LocalComponents } from '../components.ts'
import { damageFound } from '../leader/damage-found.ts'
import type { Feed } from '../leader/feed.ts'
import { loadSecrets, secretsReplaced } from '../leader/load-secrets.ts'
import type { Orchestrator } from '../leader/orchestrator.ts'
import type { OrchestratorSettings } from '../leader/settings.ts'
import { ServerMetrics } from '../metrics/server-metrics.ts'
import { type Changed, Server } from '../server.ts'
import { wantedTraces } from '../traces/wanted.ts'
import { answeringAgain } from './answer-again.ts'
import { type Binding, checkReach, isLoopback, LOOPBACK_HOST, listenAt, localUrlOf, reachOf, workerUrlOf } from './listen.ts'
import { endOrphans } from './orphans.ts'
import { measureProcess } from './process-metrics.ts'
import { CodeWatcher } from './watch.ts'
import { workerCommand } from './worker-command.ts'

export interface LocalServerOptions extends Binding {
  readonly projectDir: string
  readonly components: LocalComponents
  /** Held by this process. Closing the server gives it up. */
  readonly lease: HeldLease
  /** The name of this process. */
  readonly instance: string
  /** Attempts at a time. */
  readonly concurrency?: number
  /** Loads the project again when its code is saved. */
  readonly watch?: boolean
  /** Where the command line and workers reach it: the first of these ports that is free, 0 for any. */
  readonly port: number | readonly number[]
  /** Called when a server that stays wants to lead. Absent for a server that stays itself. */
  readonly onHandOver?: () => void
  /** True if schedules tick and sensors are evaluated. */
  readonly automation?: boolean
  readonly onLoaded?: (loaded: Reload) => void
  /** Called with the end of what a sensor or a condition printed. */
  readonly onPrinted?: (by: string, text: string) => void
  readonly onTrouble?: (error: unknown) => void
  /** Called when the process cannot go on. */
  readonly onStopped?: (error: unknown) => void
}

/** How loading the project went. */
export type Reload =
  | {
      readonly ok: true
      readonly manifest: ProjectManifest
      readonly changed: Changed
      /** True if limits or timing changed. */
      readonly hasNewSettings: boolean
      readonly ms: number
    }
  | { readonly ok: false; readonly problems: readonly ProjectProblem[]; readonly ms: number }

/** How many attempts may run, by the machine, the command line and the project. */
interface Size {
  /** How many processes of this machine run attempts. */
  now: number
  /** The same, if neither the command line nor the project sets it. */
  readonly machine: number
  settings: OrchestratorSettings
}

interface Parts {
  readonly size: Size
  readonly pool: WorkerPool
  readonly evaluations: EvaluationPool | undefined
  readonly marker: string
  readonly server: Server
  readonly stopMeasuring: () => void
}

/** Until the project is loaded its limits are unknown, and nothing is dispatched. */
const NOT_LOADED: OrchestratorSettings = { concurrency: 0 }

const CLOSE_GRACE_MS = 300
/** A request that waits for a reload looks this often whether it is over: nobody notices such a delay. */
const LOOK_AT_RELOAD_MS = 20
/** An answer waits for one durable write. */
const LEAVE_GRACE_MS = 200

type LocalServerState =
  | { readonly kind: 'starting' }
  | { readonly kind: 'serving'; readonly http: HttpServer; readonly url: string }
  | { readonly kind: 'closing'; readonly done: Promise<void> }

/** Where each state may lead. */
const transitions: Transitions<LocalServerState['kind']> = {
  starting: ['serving', 'closing'],
  serving: ['closing'],
  closing: [],
}

/**
 * A server and the machine it runs on: worker processes, a port, and a watcher of the code.
 *
 * Its states:
 * - `starting`: the project is loaded, and then a port is found.
 * - `serving`: it answers at its URL.
 * - `closing`: it leaves, and everything that it started ends.
 */
export class LocalServer {
  readonly #options: LocalServerOptions
  readonly #size: Size
  readonly #pool: WorkerPool
  /** Undefined if nothing is evaluated here. */
  readonly #evaluations: EvaluationPool | undefined
  readonly #marker: string
  readonly #server: Server
  readonly #stopMeasuring: () => void
  readonly #watcher = new CodeWatcher(() => this.#reload())
  /** One reload after the other: the later one has seen every change that the earlier one saw. */
  readonly #reloads = new Mutex()
  /** Reloads that have not ended. */
  #reloading = 0
  #state: LocalServerState = { kind: 'starting' }
  #limits: ServerLimits = {}

  private constructor(options: LocalServerOptions, parts: Parts) {
    this.#options = options
    this.#size = parts.size
    this.#pool = parts.pool
    this.#evaluations = parts.evaluations
    this.#marker = parts.marker
    this.#server = parts.server
    this.#stopMeasuring = parts.stopMeasuring
  }

  /** Where it listens. */
  get url(): string {
    assert(this.#state.kind === 'serving', `a server that is ${this.#state.kind} has no URL`)
    return this.#state.url
  }

  get feed(): Feed {
    return this.#server.feed
  }

  get api(): WorkspaceApi {
    return this.#server.api
  }

  get orchestrator(): Orchestrator {
    return this.#server.orchestrator
  }

  static async start(options: LocalServerOptions): Promise<{ server: LocalServer; loaded: Reload }> {
    const { components, projectDir, lease, instance, onTrouble, onStopped } = options
    const tell = (error: unknown) => onTrouble?.(error)
    const began = performance.now()
    const machine = options.concurrency ?? Math.max(4, availableParallelism())
    const size: Size = { now: machine, machine, settings: NOT_LOADED }
    let pool: WorkerPool | undefined
    let local: LocalServer | undefined
    try {
      const marker = await endOrphans(components.servoDir, components.clock)
      // In the background: the next start removes anything left behind.
      void components.sweepTemp().catch(() => undefined)
      pool = new WorkerPool({
        command: workerCommand(projectDir, components.dataDir, marker),
        size: size.now,
        // One process loads the project, and often has all there is to do. A second one would take its processor from it, and
        // starts in a moment when there is work for two.
        warm: 1,
        now: () => components.clock.now(),
        onTrouble: tell,
      })
      const evaluations = options.automation
        ? new EvaluationPool({ now: () => components.clock.now(), onTrouble: tell, onPrinted: options.onPrinted })
        : undefined
      const reach = reachOf(options, process.env)
      const { secrets, made } = await loadSecrets(components)
      if (made === 'new') onTrouble?.(secretsReplaced())
      const metrics = new ServerMetrics()
      const server = await Server.open({
        components,
        metrics,
        openTraces: await wantedTraces(process.env, { clock: components.clock, metrics, instance, onTrouble: tell }),
        lease,
        secrets,
        instance,
        workers: pool,
        environment: process.env,
        reach,
        concurrency: () => size.now,
        settings: () => size.settings,
        ...(options.onHandOver !== undefined && { onHandOver: options.onHandOver }),
        ...(options.automation !== undefined && { automation: options.automation }),
        ...(evaluations !== undefined && { evaluator: evaluations }),
        onTrouble: tell,
        onStopped: (error) => onStopped?.(error),
      })
      const stopMeasuring = measureProcess(metrics.registry)
      local = new LocalServer(options, { size, pool, evaluations, marker, server, stopMeasuring })
      const loaded = await local.#record(await pool.ready(), began)
      await local.#open()
      if (options.watch) await local.#watcher.add(projectDir)
      void local.#lookOver().catch(() => undefined)
      return { server: local, loaded }
    } catch (error) {
      if (local !== undefined) await local.close()
      else {
        await pool?.close({ graceMs: 0 })
        await lease.release()
      }
      throw error
    }
  }

  /** Begins nothing more, and waits for what runs here until the grace is over. It goes on answering. */
  async drain(graceMs: number): Promise<void> {
    await this.#server.drain(graceMs)
  }

  /**
   * Ends everything: no process is left, and every accepted fact is durable. What still runs is cancelled, has the grace to end by itself,
   * and is run again at the next start.
   */
  close(graceMs = CLOSE_GRACE_MS): Promise<void> {
    if (this.#state.kind === 'closing') return this.#state.done
    const done = this.#close(this.#state.kind === 'serving' ? this.#state.http : undefined, graceMs)
    this.#enter({ kind: 'closing', done })
    return done
  }

  #enter(next: LocalServerState): void {
    transition('a local server', transitions, this.#state.kind, next.kind)
    this.#state = next
  }

  async #close(http: HttpServer | undefined, graceMs: number): Promise<void> {
    this.#watcher.close()
    this.#stopMeasuring()
    http?.close()
    // Accepted requests are answered; a command that follows a run is cut off, and finds the next server.
    await this.#server.leave(LEAVE_GRACE_MS)
    http?.closeAllConnections()
    const closing = this.#server.close()
    await Promise.all([this.#pool.close({ graceMs }), this.#evaluations?.close({ graceMs })])
    await closing
    await this.#options.lease.release()
  }

  /** Opens the first of its ports that is free. */
  async #open(): Promise<void> {
    const { host = LOOPBACK_HOST, port, onTrouble } = this.#options
    const { door } = this.#server
    const warning = checkReach(host, door.reach, isLoopback(host) || (await door.knowsCallers()))
    if (warning !== undefined) onTrouble?.(warning)
    const fetch = answeringAgain(this.#server.fetch, () => (this.#isReloading ? this.#reloaded() : undefined))
    const { http, port: bound } = await listenAt(fetch, { host, ports: [port].flat(), limits: this.#limits })
    const url = localUrlOf(host, bound)
    this.#enter({ kind: 'serving', http, url })
    this.#server.reachableAt(workerUrlOf(host, door.reach) ?? url)
    await this.#options.lease.announce(url)
  }

  /** In the background, because it asks for every file of the state. */
  async #lookOver(): Promise<void> {
    const { components, onTrouble } = this.#options
    const { manifest } = this.orchestrator.loop.compactor
    for await (const damage of lookOver(components.store, new Paths(components.scope), manifest)) {
      if (this.#state.kind === 'closing') return
      onTrouble?.(damageFound(damage))
    }
  }

  #reload(): void {
    const { onLoaded, onTrouble } = this.#options
    const reload = async (): Promise<void> => {
      if (this.#state.kind === 'closing') return
      const began = performance.now()
      applyEnvFiles(this.#options.projectDir)
      const loaded = await this.#pool.replace(this.#command())
      onLoaded?.(await this.#record(loaded, began))
    }
    this.#reloading += 1
    this.#reloads
      .run(reload)
      .catch((error: unknown) => onTrouble?.(error))
      .finally(() => {
        this.#reloading -= 1
      })
  }

  get #isReloading(): boolean {
    return this.#state.kind === 'serving' && (this.#reloading > 0 || this.#watcher.isChanged)
  }

  /** The end of all reloads, also of those that are due. */
  async #reloaded(): Promise<void> {
    while (this.#isReloading) await this.#options.components.clock.sleep(LOOK_AT_RELOAD_MS)
  }

  #command(): WorkerCommand {
    const { projectDir, components } = this.#options
    return workerCommand(projectDir, components.dataDir, this.#marker)
  }

  /** Records the changes of the graph. The last good graph stays when the project cannot be loaded. */
  async #record(loaded: Loaded | LoadFailed, began: number): Promise<Reload> {
    const ms = (): number => performance.now() - began
    if (loaded.type === 'load_failed') {
      this.#evaluations?.notLoaded(loaded.problems)
      return { ok: false, problems: loaded.problems, ms: ms() }
    }
    const manifest = projectManifest.parse(loaded.manifest)
    // Before the definitions are on record: what they bring about is evaluated with the code that they come from.
    this.#evaluations?.loaded(manifest, this.#command())
    const { projectDir } = this.#options
    this.#watcher.alsoWatch(() => (manifest.code_files ?? []).flatMap((pattern) => filesOf(projectDir, pattern)))
    const hasNewSettings = this.#apply(manifest)
    const changed = await this.#server.define(manifest)
    return { ok: true, manifest, changed, hasNewSettings, ms: ms() }
  }

  /** The command line overrides the project. Returns true if the project's settings changed since it was first loaded. */
  #apply({ concurrency: declared, queues, timing, server }: ProjectManifest): boolean {
    this.#limits = server.limits
    const concurrency = this.#options.concurrency ?? declared ?? undefined
    const settings = { concurrency, queues, timing }
    const isFirst = this.#size.settings === NOT_LOADED
    const isNews = !isDeepStrictEqual(settings, this.#size.settings)
    this.#size.settings = settings
    const here = queues[LOCAL_QUEUE]?.limit ?? concurrency ?? this.#size.machine
    this.#size.now = Math.min(here, concurrency ?? here)
    this.#pool.resize(this.#size.now)
    if (isNews) this.#server.orchestrator.settingsChanged()
    return isNews && !isFirst
  }
}
