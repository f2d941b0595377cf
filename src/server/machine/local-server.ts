import { availableParallelism } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import { serve } from '@hono/node-server'
import type { WorkspaceApi } from '../../api/workspace-contract.ts'
import { type ProjectManifest, type ProjectProblem, projectManifest } from '../../contract/project-manifest.ts'
import { LOCAL_QUEUE } from '../../domain/dispatch/queue.ts'
import { assert } from '../../lib/assert.ts'
import type { HeldLease } from '../../ports/lease.ts'
import { type Loaded, type LoadFailed, WorkerPool } from '../../worker/pool/pool.ts'
import type { LocalComponents } from '../components.ts'
import type { Feed } from '../leader/feed.ts'
import { loadSecrets, secretsReplaced } from '../leader/load-secrets.ts'
import type { Orchestrator } from '../leader/orchestrator.ts'
import type { OrchestratorSettings } from '../leader/settings.ts'
import { Server } from '../server.ts'
import { endOrphans } from './orphans.ts'
import { CodeWatcher } from './watch.ts'
import { workerCommand } from './worker-command.ts'

export interface LocalServerOptions {
  readonly projectDir: string
  readonly components: LocalComponents
  /** Held by this process. Closing the server gives it up. */
  readonly lease: HeldLease
  /** Names this process. */
  readonly instance: string
  /** Attempts at a time. */
  readonly concurrency?: number
  /** Loads the project again when its code is saved. */
  readonly watch?: boolean
  /** Listens for the command line and for workers: at the first of these that is free, 0 for any. */
  readonly port: number | readonly number[]
  /** A server that stays wants to lead. Absent for one that stays itself. */
  readonly onHandOver?: () => void
  readonly onLoaded?: (loaded: Reload) => void
  readonly onTrouble?: (error: unknown) => void
  /** The process cannot go on. */
  readonly onStopped?: (error: unknown) => void
}

/** What came of loading the project. */
export type Reload =
  | {
      readonly ok: true
      readonly manifest: ProjectManifest
      /** How many assets changed. */
      readonly changed: number
      /** Whether limits or timing did. */
      readonly hasNewSettings: boolean
      readonly ms: number
    }
  | { readonly ok: false; readonly problems: readonly ProjectProblem[]; readonly ms: number }

/** How many attempts may be out, as the machine, the command line and the project say. */
interface Size {
  /** Workers of this machine. */
  now: number
  /** When nobody says otherwise. */
  readonly machine: number
  settings: OrchestratorSettings
}

/** Until the project is loaded nobody knows its limits, and nothing is dispatched. */
const NOT_LOADED: OrchestratorSettings = { concurrency: 0 }

const CLOSE_GRACE_MS = 300
/** An answer waits for one durable write. */
const LEAVE_GRACE_MS = 200

/** A server and the machine it runs on: worker processes, a port, and an eye on the code. */
export class LocalServer {
  readonly #options: LocalServerOptions
  readonly #size: Size
  readonly #pool: WorkerPool
  readonly #marker: string
  readonly #server: Server
  #watcher: CodeWatcher | undefined
  #http: ReturnType<typeof serve> | undefined
  #url: string | undefined
  #loading: Promise<unknown> = Promise.resolve()
  #closed: Promise<void> | undefined

  private constructor(options: LocalServerOptions, parts: { size: Size; pool: WorkerPool; marker: string; server: Server }) {
    this.#options = options
    this.#size = parts.size
    this.#pool = parts.pool
    this.#marker = parts.marker
    this.#server = parts.server
  }

  /** Where it listens. */
  get url(): string {
    assert(this.#url !== undefined, 'the server does not listen yet')
    return this.#url
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
    const began = performance.now()
    const machine = options.concurrency ?? Math.max(4, availableParallelism())
    const size: Size = { now: machine, machine, settings: NOT_LOADED }
    let pool: WorkerPool | undefined
    let local: LocalServer | undefined
    try {
      const marker = await endOrphans(components.servoDir, components.clock)
      // Nobody waits for it, and what stays is removed by the next start.
      void components.sweepTemp().catch(() => undefined)
      pool = new WorkerPool({
        command: workerCommand(projectDir, components.dataDir, marker),
        size: size.now,
        now: () => components.clock.now(),
        onTrouble: (error) => onTrouble?.(error),
      })
      const { secrets, made } = await loadSecrets(components)
      if (made === 'new') onTrouble?.(secretsReplaced())
      const server = await Server.open({
        components,
        lease,
        secrets,
        instance,
        workers: pool,
        concurrency: () => size.now,
        settings: () => size.settings,
        ...(options.onHandOver !== undefined && { onHandOver: options.onHandOver }),
        onTrouble: (error) => onTrouble?.(error),
        onStopped: (error) => onStopped?.(error),
      })
      local = new LocalServer(options, { size, pool, marker, server })
      const loaded = await local.#record(await pool.ready(), began)
      await local.#listen([options.port].flat())
      if (options.watch) await local.#watch()
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

  /** Ends everything: no process is left, everything accepted is durable. What was running is run again at the next start. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#watcher?.close()
    this.#http?.close()
    // What was accepted is answered; a command that follows a run is cut off, and finds the next server.
    await this.#server.leave(LEAVE_GRACE_MS)
    if (this.#http !== undefined && 'closeAllConnections' in this.#http) this.#http.closeAllConnections()
    const closing = this.#server.close()
    await this.#pool.close({ graceMs: CLOSE_GRACE_MS })
    await closing
    await this.#options.lease.release()
  }

  async #listen([port = 0, ...others]: readonly number[]): Promise<void> {
    const address = await new Promise<{ port: number }>((resolve, reject) => {
      const http = serve({ fetch: this.#server.fetch, port, hostname: '127.0.0.1' }, resolve)
      http.on('error', reject)
      this.#http = http
    }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' && others.length > 0) return undefined
      throw error
    })
    if (address === undefined) {
      await this.#listen(others)
      return
    }
    this.#url = `http://127.0.0.1:${address.port}`
    this.#server.reachableAt(this.url)
    await this.#options.lease.announce(this.url)
  }

  async #watch(): Promise<void> {
    const { projectDir, components, onLoaded } = this.#options
    this.#watcher = new CodeWatcher(() => {
      // One after the other: the later one has seen what the earlier one saw, and more.
      this.#loading = this.#loading.then(async () => {
        if (this.#closed !== undefined) return
        const began = performance.now()
        const outcome = await this.#pool.replace(workerCommand(projectDir, components.dataDir, this.#marker))
        onLoaded?.(await this.#record(outcome, began))
      })
      this.#loading = this.#loading.catch((error: unknown) => this.#options.onTrouble?.(error))
    })
    await this.#watcher.add(projectDir)
  }

  /** Writes down what changed in the graph. The last good one stays when the project cannot be loaded. */
  async #record(outcome: Loaded | LoadFailed, began: number): Promise<Reload> {
    const ms = (): number => performance.now() - began
    if (outcome.type === 'load_failed') return { ok: false, problems: outcome.problems, ms: ms() }
    const manifest = projectManifest.parse(outcome.manifest)
    const hasNewSettings = this.#apply(manifest)
    const changed = await this.#server.define(manifest)
    return { ok: true, manifest, changed, hasNewSettings, ms: ms() }
  }

  /** What the command line says goes before what the project says. Returns whether the project says something else than before. */
  #apply({ concurrency: declared, queues, timing }: ProjectManifest): boolean {
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
