import { memoryStore } from '../../../src/adapters/memory/object-store.ts'
import type { DispatchEnvelope } from '../../../src/contract/dispatch.ts'
import { type AssetDefinitionInput, projectManifest } from '../../../src/contract/project-manifest.ts'
import { checksumOf } from '../../../src/contract/stored-output.ts'
import { orchestration } from '../../../src/domain/index.ts'
import { verify } from '../../../src/engine/check/verify.ts'
import { Paths } from '../../../src/engine/paths.ts'
import { DAY_MS, MINUTE_MS } from '../../../src/lib/time.ts'
import type { ObjectStore } from '../../../src/ports/object-store.ts'
import { loadSecrets } from '../../../src/server/leader/load-secrets.ts'
import { Server } from '../../../src/server/server.ts'
import type { StoreRequest } from '../../../src/testing/counting-store.ts'
import { memoryComponents } from '../../../src/testing/memory-components.ts'
import { ScriptedLease } from '../../../src/testing/scripted-lease.ts'
import { type Scripted, ScriptedWorkers } from '../../../src/testing/scripted-workers.ts'
import { VirtualClock } from '../../../src/testing/virtual-clock.ts'
import { interceptedStore } from '../../engine/intercepted-store.ts'

export type Assets = readonly (Partial<AssetDefinitionInput> & { readonly asset_key: string })[]

/** How an attempt stores its value: by default as a file. */
export type Script = (envelope: DispatchEnvelope, made: number) => (Scripted & { inline?: boolean }) | undefined

/** Servers on virtual time, one after the other on the same store, whose workers store values. */
export class Keeping {
  readonly clock = new VirtualClock()
  readonly store = memoryStore()
  readonly memory = { ...memoryComponents(this.clock), store: this.store }
  readonly root = new Paths(this.memory.scope).root
  readonly troubles: unknown[] = []
  server!: Server
  lease!: ScriptedLease
  script: Script = () => undefined
  #assets: Assets = []
  #made = 0
  #asked = 0
  #servers = 0

  static async open(assets: Assets, script?: Script): Promise<Keeping> {
    const keeping = new Keeping()
    if (script !== undefined) keeping.script = script
    await keeping.start(assets)
    return keeping
  }

  /** Starts a server; the one before, if any, is not told. */
  async start(assets = this.#assets, before?: (request: StoreRequest) => Promise<void> | void): Promise<void> {
    this.#assets = assets
    this.#servers += 1
    this.lease?.lose({ notifies: false })
    this.lease = new ScriptedLease(this.#servers)
    const store: ObjectStore = before === undefined ? this.store : interceptedStore(this.store, before)
    const components = { ...memoryComponents(this.clock, this.#servers), secrets: this.memory.secrets, store }
    const { secrets } = await loadSecrets(components)
    this.server = await Server.open({
      components,
      lease: this.lease,
      secrets,
      instance: `server-${this.#servers}`,
      workers: new ScriptedWorkers(this.clock, (envelope) => this.#attempt(envelope)),
      concurrency: () => 8,
      onTrouble: (error) => this.troubles.push(error),
    })
    await this.define(assets)
  }

  async define(assets: Assets): Promise<void> {
    this.#assets = assets
    await this.server.define(
      projectManifest.parse({ project: 'keeping', assets: assets.map((a) => ({ kind: 'asset', ...a })) }),
    )
  }

  async make(selection: string, partition?: string): Promise<void> {
    const request = {
      select: [selection],
      key: `r${this.#asked++}`,
      ...(partition !== undefined && { partitions: [partition] }),
    }
    await this.server.api.runs.request(request, 'tester')
    await this.clock.advance(1_000)
  }

  /** Longer than values are left to readers, and than a pass waits. */
  async wait(minutes = 20): Promise<void> {
    await this.clock.advance(minutes * MINUTE_MS)
  }

  /** Days in which no server runs. */
  async away(days: number): Promise<void> {
    this.clock.jump(days * DAY_MS)
    await this.start()
    await this.wait()
  }

  /** The values that are there, by the number of the attempt that made them. */
  async files(): Promise<string[]> {
    const paths: string[] = []
    for await (const { path } of this.store.list(`${this.root}data/`)) paths.push(path)
    return paths
      .map((path) => path.replace(/^.*\/(m\d+)\.json$/, '$1'))
      .toSorted((a, b) => Number(a.slice(1)) - Number(b.slice(1)))
  }

  async checked() {
    await this.server.orchestrator.publish()
    const report = await verify({
      store: this.store,
      scope: this.memory.scope,
      registry: orchestration,
      scratch: memoryStore(),
      data: true,
    })
    return { problems: report.problems, values: report.values }
  }

  #attempt(envelope: DispatchEnvelope): Scripted {
    const number = ++this.#made
    const { inline, ...scripted } = this.script(envelope, number) ?? {}
    if (scripted.result !== undefined) return scripted
    const materialization_id = `m${number}`
    const text = JSON.stringify({ made: number })
    const bytes = new TextEncoder().encode(text)
    const path = `${envelope.payload.output_folder}${materialization_id}.json`
    // In memory this is done at once.
    if (!inline) void this.store.create(`${this.root}${path}`, bytes)
    const output = { ...(inline ? { value: text } : { path }), ...checksumOf(bytes) }
    return { ...scripted, result: { outcome: 'SUCCEEDED', materialization_id, output } }
  }
}

export const keep = (versions: number, days = 0) => ({ policies: { keep: { versions, days } } })
