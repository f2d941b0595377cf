import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { systemClock } from '../../src/adapters/system/clock.ts'
import { projectManifest } from '../../src/contract/project-manifest.ts'
import { assetDefinitions } from '../../src/domain/assets/asset-definitions.table.ts'
import { AssetsDefined } from '../../src/domain/assets/assets-defined.event.ts'
import { assetsDefined } from '../../src/domain/assets/definitions.ts'
import { isRunOver, type RunRow, runs } from '../../src/domain/runs/runs.table.ts'
import type { Reactor } from '../../src/engine/loop/loop.ts'
import { Paths } from '../../src/engine/paths.ts'
import { newEvent } from '../../src/model/event.ts'
import { localComponents } from '../../src/server/components.ts'
import { Orchestrator } from '../../src/server/leader/orchestrator.ts'
import { workerCommand } from '../../src/server/machine/worker-command.ts'
import { runRequested } from '../../src/server/workspace/requests.ts'
import { WorkerPool } from '../../src/worker/pool/pool.ts'
import { atEnd } from './ending.ts'
import { type MeteredStore, meteredStore, type Usage } from './metered-store.ts'
import { scratchFolder } from './scratch.ts'
import { scope } from './stream.ts'

export interface ServoOptions {
  /** A module that exports assets. */
  readonly assets: string
  /** Worker processes; four as in `servo dev` on a small machine. */
  readonly concurrency?: number
  /** A folder with history, which is copied. */
  readonly history?: string
  /** Whether tables are written behind the hot path. To find out what that costs. */
  readonly publishes?: boolean
}

const NEVER_MS = 2 ** 31 - 1
const secret = { id: 'bench', value: 'not a secret, only long enough' }

/** A whole Servo on a folder of its own: the orchestrator in this process, real worker processes, everything durable. */
export class Servo {
  readonly orchestrator: Orchestrator
  /** The folder of its state. */
  readonly dir: string
  /** Time during which tables were being written. */
  publishingMs = 0
  readonly #store: MeteredStore
  readonly #pool: WorkerPool
  readonly #over: Over
  #requests = 0
  #closed: Promise<void> | undefined

  private constructor(parts: { orchestrator: Orchestrator; dir: string; store: MeteredStore; pool: WorkerPool; over: Over }) {
    const { orchestrator } = parts
    this.orchestrator = orchestrator
    this.dir = parts.dir
    this.#store = parts.store
    this.#pool = parts.pool
    this.#over = parts.over
    atEnd(() => this.close())
    const { compactor } = orchestrator.loop
    const publish = compactor.publish.bind(compactor)
    compactor.publish = async (options) => {
      const start = performance.now()
      try {
        return await publish(options)
      } finally {
        this.publishingMs += performance.now() - start
      }
    }
  }

  static async open({ assets, concurrency = 4, history, publishes = true }: ServoOptions): Promise<Servo> {
    const project = projectWith(assets)
    const data = scratchFolder('servo')
    if (history !== undefined) cpSync(history, data, { recursive: true })
    const local = localComponents(data, scope)
    const store = meteredStore(local.store)
    const components = { ...local, store }
    const workspace = path.join(data, `tenant=${scope.tenant_id}`, `workspace=${scope.workspace_id}`)
    const pool = new WorkerPool({ command: workerCommand(project, workspace), size: concurrency, now: systemClock.now })
    const over = new Over()
    const { ulid } = components
    const instance = ulid()
    const lease = await components.lease.claim({ name: instance, term: 'standing' })
    if (!lease.held) throw new Error('somebody else leads')
    const orchestrator = await Orchestrator.open({
      components,
      lease,
      instance,
      workers: pool,
      reactors: [over.reactor],
      concurrency: () => concurrency,
      ...(!publishes && { publishDelayMs: NEVER_MS }),
      onStopped: (error) => {
        throw error
      },
      onTrouble: (error) => console.error(error),
    })
    const servo = new Servo({ orchestrator, dir: data, store, pool, over })
    await servo.#define(ulid)
    return servo
  }

  /** Requests a run and resolves when it has succeeded, and that is durable. */
  async run(selection: string, partitions: readonly string[] | null = null): Promise<void> {
    const name = String(this.#requests++)
    const { run_id, event } = runRequested(scope, secret, {
      run_key: `manual:${name}`,
      asset_selection: [selection],
      partition_selection: partitions,
      source: { type: 'manual', user_id: 'bench', request_id: name },
    })
    const over = this.#over.of(run_id)
    await this.orchestrator.submit([event])
    await over
  }

  /** What was asked of the store since the last time. */
  take(): Usage & { readonly segments: number } {
    const usage = this.#store.take()
    const ledger = new Paths(scope).ledger
    return { ...usage, segments: usage.written.filter((object) => object.path.startsWith(ledger)).length }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    const closing = this.orchestrator.close()
    await this.#pool.close({ graceMs: 0 })
    await closing
  }

  async #define(mintId: () => string): Promise<void> {
    const loaded = await this.#pool.ready()
    if (loaded.type === 'load_failed') throw new Error(JSON.stringify(loaded.problems, null, 2))
    const manifest = projectManifest.parse(loaded.manifest)
    const { state } = this.orchestrator.loop.compactor
    const known = state.hot(assetDefinitions).all()
    const parts = assetsDefined({ manifest, known, knownPools: [], now: Date.now(), mintId })
    if (parts.length > 0) await this.orchestrator.submit(parts.map((part) => newEvent(AssetsDefined, part)))
  }
}

/** Tells who waits for a run that it is over. */
class Over {
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>()

  readonly reactor: Reactor = {
    watches: runs,
    react: (row) => {
      const run = row as RunRow
      const waiting = isRunOver(run.state) ? this.#waiting.get(run.run_id) : undefined
      if (waiting === undefined) return
      this.#waiting.delete(run.run_id)
      if (run.state === 'SUCCEEDED') waiting.resolve()
      else waiting.reject(new Error(`${run.run_id} ${run.state}: ${run.error ?? `${run.tasks_failed} tasks failed`}`))
    },
  }

  of(runId: string): Promise<void> {
    const waiting = Promise.withResolvers<void>()
    this.#waiting.set(runId, waiting)
    return waiting.promise
  }
}

function projectWith(assets: string): string {
  const folder = scratchFolder('project')
  const config = `import { defineConfig } from 'servo-flow'\nexport default defineConfig({ project: 'bench', dirs: ['assets'] })\n`
  mkdirSync(path.join(folder, 'assets'))
  writeFileSync(path.join(folder, 'servo.config.ts'), config)
  writeFileSync(path.join(folder, 'assets/bench.ts'), assets)
  return folder
}
