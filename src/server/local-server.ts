import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { serve } from '@hono/node-server'
import { fsStore } from '../adapters/fs/object-store.ts'
import { localApp } from '../api/app.ts'
import type { AssetsApi } from '../api/asset-contract.ts'
import type { RunsApi } from '../api/run-contract.ts'
import type { StatusApi } from '../api/status-contract.ts'
import { type ProjectManifest, type ProjectProblem, projectManifest } from '../contract/definition.ts'
import { assetDefinitions } from '../domain/assets/asset-definitions.table.ts'
import { AssetsDefined } from '../domain/assets/assets-defined.event.ts'
import { assetsDefined } from '../domain/assets/definitions.ts'
import { keysOfAsset } from '../domain/assets/former-keys.ts'
import { pools } from '../domain/assets/pools.table.ts'
import { partitionStatus } from '../domain/partitions/partition-status.table.ts'
import { Paths } from '../engine/paths.ts'
import { ulidSource } from '../lib/ulid.ts'
import { newEvent } from '../model/event.ts'
import { systemClock } from '../ports/clock.ts'
import { type Loaded, type LoadFailed, WorkerPool } from '../worker/pool.ts'
import { Feed } from './leader/feed.ts'
import { HeldWorkers } from './leader/held-workers.ts'
import { Orchestrator, type OrchestratorSettings } from './leader/orchestrator.ts'
import { endedAttempt, WorkerDoor } from './leader/worker-door.ts'
import { dataDir, localScope, lockFile, secretsFile } from './machine/local-files.ts'
import { ProcessLock } from './machine/process-lock.ts'
import { localSecrets } from './machine/secrets.ts'
import { CodeWatcher } from './machine/watch.ts'
import { workerCommand } from './machine/worker-command.ts'
import { assetsApi } from './workspace/assets-api.ts'
import { knownTo } from './workspace/known-assets.ts'
import { RunReader } from './workspace/run-reader.ts'
import { Runs } from './workspace/runs.ts'
import { runsApi } from './workspace/runs-api.ts'
import { sqlOver } from './workspace/sql-rows.ts'
import { Statuses } from './workspace/status/statuses.ts'

export interface LocalServerOptions {
  readonly projectDir: string
  /** Where everything is kept; `.servo` in the project unless told otherwise. */
  readonly servoDir?: string
  /** Attempts at a time. */
  readonly concurrency?: number
  /** Loads the project again when its code is saved. */
  readonly watch?: boolean
  /** Listens for the command line and for workers: at the first of these that is free, 0 for any; absent for not at all. */
  readonly port?: number | readonly number[]
  readonly onLoaded?: (loaded: Reload) => void
  readonly onTrouble?: (error: unknown) => void
  /** The process cannot go on. */
  readonly onStopped?: (error: unknown) => void
}

/** What came of loading the project. */
export type Reload =
  | { readonly ok: true; readonly manifest: ProjectManifest; readonly changed: number; readonly ms: number }
  | { readonly ok: false; readonly problems: readonly ProjectProblem[]; readonly ms: number }

/** How many attempts may be out, as the machine, the command line and the project say. */
interface Size {
  /** Workers of this machine. */
  now: number
  /** When nobody says otherwise. */
  readonly machine: number
  /** Until the project is loaded nobody knows its limits, and nothing is dispatched. */
  settings: OrchestratorSettings
}

const CLOSE_GRACE_MS = 300

/** Everything in one process tree on one folder: the orchestrator, its workers, and a door for the command line. */
export class LocalServer {
  readonly feed: Feed
  readonly runs: RunsApi
  readonly statuses: StatusApi
  readonly assets: AssetsApi
  readonly orchestrator: Orchestrator
  url: string | undefined
  readonly #options: LocalServerOptions
  readonly #size: Size
  readonly #pool: WorkerPool
  readonly #workers: HeldWorkers
  readonly #lock: ProcessLock
  readonly #door: WorkerDoor
  readonly #ulid: () => string
  #watcher: CodeWatcher | undefined
  #http: ReturnType<typeof serve> | undefined
  #loading: Promise<unknown> = Promise.resolve()
  #closed: Promise<void> | undefined

  private constructor(parts: {
    options: LocalServerOptions
    size: Size
    pool: WorkerPool
    workers: HeldWorkers
    lock: ProcessLock
    ulid: () => string
    orchestrator: Orchestrator
    door: WorkerDoor
    feed: Feed
    runs: RunsApi
    statuses: StatusApi
    assets: AssetsApi
  }) {
    this.#options = parts.options
    this.#size = parts.size
    this.#pool = parts.pool
    this.#workers = parts.workers
    this.#lock = parts.lock
    this.#ulid = parts.ulid
    this.orchestrator = parts.orchestrator
    this.#door = parts.door
    this.feed = parts.feed
    this.runs = parts.runs
    this.statuses = parts.statuses
    this.assets = parts.assets
  }

  static async start(options: LocalServerOptions): Promise<{ server: LocalServer; loaded: Reload }> {
    const began = performance.now()
    const servoDir = options.servoDir ?? join(options.projectDir, '.servo')
    const lock = await ProcessLock.take(lockFile(servoDir))
    const machine = options.concurrency ?? Math.max(4, availableParallelism())
    const size: Size = { now: machine, machine, settings: { concurrency: 0 } }
    const pool = new WorkerPool({
      command: workerCommand(options.projectDir, dataDir(servoDir)),
      size: size.now,
      now: systemClock.now,
    })
    let server: LocalServer | undefined
    try {
      const secrets = await localSecrets(secretsFile(servoDir))
      const ulid = ulidSource(systemClock.now, (length) => randomBytes(length))
      const instance = ulid()
      const store = fsStore(servoDir)
      const workers = new HeldWorkers(pool)
      const feed: Feed = new Feed({
        rows: () => orchestrator.loop.compactor.state,
        durable: () => orchestrator.loop.durable(),
      })
      const orchestrator: Orchestrator = await Orchestrator.open({
        store,
        scope: localScope,
        clock: systemClock,
        ulid,
        instance,
        workers,
        reactors: feed.reactors,
        concurrency: () => size.now,
        settings: () => size.settings,
        foreign: { history: (attempt) => endedAttempt(reader, attempt) },
        onTrouble: (error) => options.onTrouble?.(error),
        onStopped: (error) => options.onStopped?.(error),
      })
      const sql = sqlOver(servoDir, store, localScope)
      const reader: RunReader = new RunReader(() => orchestrator.loop.compactor.state, sql)
      const commands = new Runs({ orchestrator, reader, scope: localScope, secret: secrets.run_ids, mintId: ulid })
      const paths = new Paths(localScope)
      const runs = runsApi({ runs: commands, reader, feed, logs: orchestrator.logs, store, paths })
      const assets = assetsApi(knownTo(orchestrator, { sql, now: systemClock.now, mintId: ulid }))
      const door = new WorkerDoor({ foreign: orchestrator.foreign, secrets, scope: localScope, clock: systemClock })
      const statuses = new Statuses({
        graph: () => orchestrator.graph.get(),
        partitions: () => orchestrator.graph.partitions(),
        rows: () => orchestrator.loop.compactor.coldRows(partitionStatus),
        now: systemClock.now,
        keysOf: (key) => keysOfAsset(orchestrator.loop.compactor.state, key),
        recorded: (key) => orchestrator.loop.compactor.state.hot(assetDefinitions).get(key),
      })
      const apis = { runs, assets, statuses }
      server = new LocalServer({ options, size, pool, workers, lock, ulid, orchestrator, door, feed, ...apis })
      const loaded = await server.#record(await pool.ready(), began)
      if (options.port !== undefined) await server.#listen([options.port].flat(), secrets.api_token, instance)
      if (options.watch) await server.#watch()
      return { server, loaded }
    } catch (error) {
      if (server !== undefined) await server.close()
      else {
        await pool.close({ graceMs: 0 })
        await lock.release()
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
    if (this.#http !== undefined && 'closeAllConnections' in this.#http) this.#http.closeAllConnections()
    const closing = this.orchestrator.close()
    await this.#pool.close({ graceMs: CLOSE_GRACE_MS })
    await closing
    await this.#lock.release()
  }

  async #listen([port = 0, ...others]: readonly number[], token: string, instance: string): Promise<void> {
    const app = localApp({
      runs: this.runs,
      statuses: this.statuses,
      assets: this.assets,
      token,
      instance,
      hosts: ['127.0.0.1', 'localhost', '[::1]'],
      workers: this.#door.routes,
    })
    const address = await new Promise<{ port: number }>((resolve, reject) => {
      const http = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, resolve)
      http.on('error', reject)
      this.#http = http
    }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' && others.length > 0) return undefined
      throw error
    })
    if (address === undefined) {
      await this.#listen(others, token, instance)
      return
    }
    this.url = `http://127.0.0.1:${address.port}`
    this.#door.open(this.url)
    await this.#lock.announce(this.url)
  }

  async #watch(): Promise<void> {
    const { projectDir, onLoaded } = this.#options
    this.#watcher = new CodeWatcher(() => {
      // One after the other: the later one has seen what the earlier one saw, and more.
      this.#loading = this.#loading.then(async () => {
        if (this.#closed !== undefined) return
        const began = performance.now()
        const outcome = await this.#pool.replace(
          workerCommand(projectDir, dataDir(this.#options.servoDir ?? join(projectDir, '.servo'))),
        )
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
    const { state } = this.orchestrator.loop.compactor
    const parts = assetsDefined({
      manifest,
      known: state.hot(assetDefinitions).all(),
      knownPools: state.hot(pools).all(),
      mintId: this.#ulid,
    })
    if (parts.length > 0) await this.orchestrator.submit(parts.map((part) => newEvent(AssetsDefined, part)))
    // What the command line says goes before what the project says.
    const concurrency = this.#options.concurrency ?? manifest.concurrency ?? undefined
    const settings = { concurrency, queues: manifest.queues, timing: manifest.timing }
    const isNews = !isDeepStrictEqual(settings, this.#size.settings)
    this.#size.settings = settings
    const here = manifest.queues['default']?.limit ?? concurrency ?? this.#size.machine
    this.#size.now = Math.min(here, concurrency ?? here)
    this.#pool.resize(this.#size.now)
    if (isNews) this.orchestrator.settingsChanged()
    this.#workers.release()
    this.#door.tell(manifest.queues)
    const changed = parts.reduce((sum, part) => sum + part.assets.length, 0)
    return { ok: true, manifest, changed, ms: ms() }
  }
}
