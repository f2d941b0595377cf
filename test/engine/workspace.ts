import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { type RebuildReport, rebuild } from '../../src/engine/check/rebuild.ts'
import { type VerifyReport, verify } from '../../src/engine/check/verify.ts'
import type { Leading } from '../../src/engine/ledger/leading.ts'
import { type Appended, Ledger, type LedgerOptions } from '../../src/engine/ledger/ledger.ts'
import { decodeSegment } from '../../src/engine/ledger/segment.ts'
import { View } from '../../src/engine/loop/view.ts'
import type { Manifest } from '../../src/engine/manifest/manifest.ts'
import { manifestNumbers, readManifest } from '../../src/engine/manifest/stored-manifests.ts'
import { Paths } from '../../src/engine/paths.ts'
import { Compactor, type CompactorOptions } from '../../src/engine/publish/compactor.ts'
import { collectGarbage, type GarbageReport } from '../../src/engine/publish/garbage.ts'
import { sha256 } from '../../src/lib/hash.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import type { NewEvent } from '../../src/model/event.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { ObjectStore } from '../../src/ports/object-store.ts'
import { seededBytes } from '../../src/testing/seeded-bytes.ts'

export const scope = { tenant_id: 'acme', workspace_id: 'analytics' }
export const paths = new Paths(scope)

/** Time that passes only when somebody says so; waiting is saying so. */
export class TestClock implements Clock {
  nowMs: number

  constructor(nowMs = Date.UTC(2025, 0, 15, 10)) {
    this.nowMs = nowMs
  }

  now(): number {
    return this.nowMs
  }

  async sleep(ms: number): Promise<void> {
    this.nowMs += ms
  }

  monotonic(): number {
    return this.nowMs
  }

  pass(ms: number): void {
    this.nowMs += ms
  }
}

export { seededBytes }

/** One workspace in one store, with everything that works on it. Components may be given a store of their own, e.g. a faulty one. */
export class Workspace {
  readonly store: ObjectStore
  readonly clock: TestClock
  readonly #ids: () => string
  #ledger: Ledger | undefined

  constructor(store: ObjectStore = memoryStore(), clock: TestClock = new TestClock(), seed = 1) {
    this.store = store
    this.clock = clock
    this.#ids = ulidSource(() => this.clock.now(), seededBytes(seed))
  }

  /** The same at the same moment, to go on differently. */
  async copy(): Promise<Workspace> {
    const store = memoryStore()
    for (const path of await this.paths()) await store.put(path, (await this.store.get(path))!)
    return new Workspace(store, new TestClock(this.clock.now()), 2)
  }

  /** Writes everything to a folder as it is. What is made in memory and saved is there sooner than what is synced file by file. */
  async save(dir: string): Promise<void> {
    for (const path of await this.paths()) {
      const file = join(dir, path)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, (await this.store.get(path))!)
    }
  }

  ledger(options: Partial<LedgerOptions> = {}): Ledger {
    return new Ledger({ store: this.store, scope, clock: this.clock, ulid: this.#ids, source: 'test', ...options })
  }

  /** Appends a millisecond later than the last one, so that every segment has a name of its own time. */
  async append(...events: NewEvent[]): Promise<Appended> {
    this.clock.pass(1)
    this.#ledger ??= this.ledger()
    return await this.#ledger.append(events)
  }

  async appendAll(batches: readonly (readonly NewEvent[])[]): Promise<void> {
    for (const batch of batches) await this.append(...batch)
  }

  compactorOptions(options: Partial<CompactorOptions> = {}): CompactorOptions {
    return { store: this.store, scope, registry: orchestration, clock: this.clock, name: 'test', ...options }
  }

  async compactor(options: Partial<CompactorOptions> = {}): Promise<Compactor> {
    return await Compactor.open(this.compactorOptions(options))
  }

  async view(store: ObjectStore = this.store): Promise<View> {
    return await View.open({ store, scope, registry: orchestration, clock: this.clock })
  }

  async collect(graceMs = 0, store: ObjectStore = this.store): Promise<GarbageReport> {
    return await collectGarbage({ store, scope, registry: orchestration, clock: this.clock, graceMs })
  }

  async verify({
    kept,
    ...options
  }: {
    quick?: boolean
    data?: boolean
    kept?: string | undefined
  } = {}): Promise<VerifyReport> {
    const { store } = this
    return await verify({ store, scope, registry: orchestration, scratch: memoryStore(), kept: async () => kept, ...options })
  }

  async rebuild(options: { lease?: Leading; acceptLoss?: boolean } = {}): Promise<RebuildReport> {
    const { store, clock } = this
    return await rebuild({ store, scope, registry: orchestration, clock, name: 'rebuild', scratch: memoryStore(), ...options })
  }

  async paths(prefix = paths.root): Promise<string[]> {
    const found: string[] = []
    for await (const { path } of this.store.list(prefix)) found.push(path)
    return found
  }

  /** SHA-256 of every file under a prefix. */
  async digests(prefix = paths.root): Promise<Record<string, string>> {
    const entries = await Promise.all(
      (await this.paths(prefix)).map(async (path) => [path, sha256((await this.store.get(path))!)]),
    )
    return Object.fromEntries(entries)
  }

  async manifests(): Promise<Manifest[]> {
    const numbers = await manifestNumbers(this.store, paths)
    return (await Promise.all(numbers.map((number) => readManifest(this.store, paths, scope, number)))).filter(
      (it) => it !== undefined,
    )
  }

  /** How often each event is in the ledger. */
  async eventCounts(): Promise<Map<string, number>> {
    const counts = new Map<string, number>()
    for (const path of await this.paths(paths.ledger)) {
      for (const { event_id } of decodeSegment((await this.store.get(path))!, path, scope)) {
        counts.set(event_id, (counts.get(event_id) ?? 0) + 1)
      }
    }
    return counts
  }
}
