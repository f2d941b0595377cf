import assert from 'node:assert/strict'
import { orchestration } from '../../src/domain/index.ts'
import type { Segment } from '../../src/engine/ledger/segment.ts'
import { Compactor } from '../../src/engine/publish/compactor.ts'
import { collectGarbage } from '../../src/engine/publish/garbage.ts'
import { MINUTE_MS } from '../../src/lib/time.ts'
import type { AlarmClock } from '../../src/ports/clock.ts'
import { localComponents } from '../../src/server/components.ts'
import { type MeteredStore, meteredStore, type Usage } from './metered-store.ts'
import { processorTime } from './processor-time.ts'
import { Stream, type StreamOptions, scope } from './stream.ts'

/** Two hundred events a second: a base every few minutes, and two hours of ledger in the compactor's look-back. */
const MS_PER_EVENT = 5
/** Builds history faster than the batches that are measured; bases come as often, because rows decide when. */
const BUILD_EVENTS = 10_000
const COLLECT_EVERY_MS = 15 * MINUTE_MS

export interface Batch extends Usage {
  readonly kind: 'delta' | 'base'
  readonly wallMs: number
  /** What this process computed; the rest of the time it waited for the disk, or for other programs. */
  readonly cpuMs: number
  readonly applyMs: number
  /** JSON.parse of the batch's events: how fast this machine computes just now. */
  readonly parseMs: number
}

export interface Collection {
  readonly wallMs: number
  readonly requests: number
  readonly files: number
}

/** A workspace whose time passes with its events, and whose compactor never restarts. */
export class Workload {
  readonly stream: Stream
  readonly store: MeteredStore
  readonly collections: Collection[] = []
  readonly clock: Pick<AlarmClock, 'now' | 'monotonic'>
  readonly compactor: Compactor
  #collectedAt: number

  private constructor(stream: Stream, store: MeteredStore, clock: Pick<AlarmClock, 'now' | 'monotonic'>, compactor: Compactor) {
    this.stream = stream
    this.store = store
    this.clock = clock
    this.compactor = compactor
    this.#collectedAt = stream.now
  }

  static async open(folder: string, options: StreamOptions): Promise<Workload> {
    const stream = new Stream({ msPerEvent: MS_PER_EVENT, ...options })
    const local = localComponents(folder, scope)
    const store = meteredStore(local.store)
    const now = (): number => Math.floor(stream.now)
    const clock = { now, monotonic: now, sleep: () => Promise.resolve() }
    return new Workload(
      stream,
      store,
      clock,
      await Compactor.open({ store, scope, registry: orchestration, clock, name: 'bench', encoder: local.encoder }),
    )
  }

  /** Folds and publishes so many events, and says what that took. Making the events is not counted. */
  async batch(events: number): Promise<Batch> {
    const segments = this.stream.segments(events)
    this.store.take()
    const cpu = process.cpuUsage()
    const start = performance.now()
    const verdicts = await this.compactor.fold.apply(segments)
    const applyMs = performance.now() - start
    await this.compactor.publish()
    const wallMs = performance.now() - start
    const cpuMs = processorTime(cpu)
    // A stream that is ignored or parked would be measured as very fast.
    for (const verdict of verdicts.values()) assert.equal(verdict.kind, 'applied')
    const kind = this.compactor.manifest.l0.length === 0 ? 'base' : 'delta'
    return { kind, wallMs, cpuMs, applyMs, parseMs: parseMs(segments), ...this.store.take() }
  }

  /** Goes on until so many tasks have finished and a base was just made. */
  async buildTo(tasks: number, each: (batch: Batch) => void = () => undefined): Promise<void> {
    while (this.stream.finishedTasks < tasks || this.compactor.manifest.l0.length > 0) {
      each(await this.batch(BUILD_EVENTS))
      await this.collect()
    }
  }

  /** Garbage collection every quarter of an hour of the workspace's time. */
  async collect(): Promise<void> {
    if (this.stream.now - this.#collectedAt < COLLECT_EVERY_MS) return
    this.#collectedAt = this.stream.now
    this.store.take()
    const start = performance.now()
    const { files } = await collectGarbage({ store: this.store, scope, registry: orchestration, clock: this.clock })
    this.collections.push({ wallMs: performance.now() - start, requests: this.store.take().requests, files })
  }
}

function parseMs(segments: readonly Segment[]): number {
  const text = JSON.stringify(segments)
  const cpu = process.cpuUsage()
  JSON.parse(text)
  return processorTime(cpu)
}
