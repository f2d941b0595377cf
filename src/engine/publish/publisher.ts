import { HOUR_MS, MINUTE_MS, SECOND_MS, toMs } from '../../lib/time.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { Manifest } from '../manifest/manifest.ts'
import type { Compactor } from './compactor.ts'
import { BRIEF_COLLECTION, type CollectionLimit, isCollectionDue } from './garbage.ts'

export interface PublisherOptions {
  readonly compactor: Compactor
  readonly clock: AlarmClock
  /** Removes what no kept manifest names, up to a limit; called about once an hour while there is something to publish. */
  readonly collect: (limit?: CollectionLimit) => Promise<unknown>
  /** Packs some of the ledger; false if nothing is left to pack for now. */
  readonly pack?: () => Promise<boolean>
  readonly onError: (error: unknown) => void
  /** How long facts wait for others before tables are written. Readers that cannot wait read the ledger's tail. */
  readonly delayMs?: number
  /** Called when much has happened and then nothing for a while: everything is published and merged, and memory can be given back. */
  readonly onQuiet?: (() => void) | undefined
  /** Called after each publish that wrote something, or failed. */
  readonly onPublished?: (published: Published) => void
}

export interface Published {
  readonly ok: boolean
  /** How long it took. */
  readonly ms: number
  /** How long the oldest event in it was durable before the tables showed it, of those that may not wait; undefined without such. */
  readonly lagMs: number | undefined
}

/** What can wait is in the tables after this time though nothing else happens: a start reads only so many segments again. */
const MAX_WAIT_MS = HOUR_MS
/** Publishing takes at most one part in this many of the time, however large the tables are. */
const SHARE = 8

/**
 * So many events are published without waiting for the share: rows of ended work stay in memory until they are sealed, and all that is
 * published together is copied in one turn, in which nobody is answered.
 */
const FULL_EVENTS = 50_000

/** A server that is never idle packs a step this often: more than it can write meanwhile. */
const PACK_AT_LEAST_MS = MINUTE_MS

/** What so many events left in memory is worth a merge as soon as nothing happens for a while. */
const MANY_EVENTS = 5_000
const QUIET_MS = 15 * SECOND_MS

type PublisherState =
  | { readonly kind: 'idle' }
  /** `at` is a time of the monotonic clock, as all times here: a wall clock that is set back must not put publishing off. */
  | { readonly kind: 'scheduled'; readonly at: number; cancel(): void }
  | { readonly kind: 'publishing'; readonly done: Promise<void> }
  | { readonly kind: 'stopped'; readonly done: Promise<void> }

/** Where each state may lead. */
const transitions: Transitions<PublisherState['kind']> = {
  idle: ['scheduled', 'publishing', 'stopped'],
  scheduled: ['scheduled', 'publishing', 'stopped'],
  publishing: ['idle', 'stopped'],
  stopped: [],
}

/**
 * Publishes behind the hot path: a moment after something happened, less often the longer it takes, and once more when
 * deltas have to be merged although nothing happens. When there is nothing to publish it does nothing at all. After a busy time it merges
 * as soon as it is quiet, because rows of ended work stay in memory until then.
 *
 * Its states:
 * - `idle`: everything is published and merged.
 * - `scheduled`: a publish begins at a set time, which may become an earlier one.
 * - `publishing`: what happens meanwhile is noticed when the publish is over.
 * - `stopped`: no publish begins by itself any more; one may still be under way.
 */
export class Publisher {
  readonly #options: PublisherOptions
  #state: PublisherState = { kind: 'idle' }
  /** The next publish waits until this time, so that publishing does not take more than its share. */
  #notBefore = 0
  #publishes = 0
  #collectedAt: number
  /** The manifest that this process began with, until it has collected. */
  #found: Manifest | undefined
  #packedAt: number
  /** How long to wait before the next step of packing; undefined while nothing is left to pack. */
  #packAfterMs: number | undefined
  /** When something became durable last. */
  #noticedAt = 0
  /** When the oldest event became durable that no table shows, of those that may not wait. */
  #behindSince: number | undefined
  /** Events published since it was quiet. */
  #sinceQuiet = 0

  constructor(options: PublisherOptions) {
    this.#options = options
    this.#collectedAt = options.clock.monotonic()
    this.#found = options.compactor.manifest
    this.#packedAt = this.#collectedAt
  }

  /** Something is durable that no table shows yet; it may wait until something else is. */
  noticed(canWait = false): void {
    const { clock, delayMs = SECOND_MS } = this.#options
    const now = clock.monotonic()
    this.#noticedAt = now
    if (!canWait) this.#behindSince ??= now
    this.#schedule(canWait ? Math.max(now + MAX_WAIT_MS, this.#notBefore) : this.#turn(now + delayMs))
  }

  /** Publishes what there is now. */
  async flush(): Promise<void> {
    if (this.#state.kind === 'publishing' || this.#state.kind === 'stopped') await this.#state.done
    await (this.#state.kind === 'stopped' ? this.#publish() : this.#begin())
  }

  /** Lets no further publish begin by itself. */
  stop(): void {
    if (this.#state.kind === 'stopped') return
    if (this.#state.kind === 'scheduled') this.#state.cancel()
    this.#enter({ kind: 'stopped', done: this.#state.kind === 'publishing' ? this.#state.done : Promise.resolve() })
  }

  /** Stops, and waits for the publish under way. */
  async close(): Promise<void> {
    this.stop()
    if (this.#state.kind === 'stopped') await this.#state.done
  }

  #enter(next: PublisherState): void {
    transition('a publisher', transitions, this.#state.kind, next.kind)
    this.#state = next
  }

  /** Publishes at this time, or earlier if that was planned already. */
  #schedule(at: number): void {
    if (this.#state.kind === 'publishing' || this.#state.kind === 'stopped') return
    if (this.#state.kind === 'scheduled') {
      // The alarm may be set for later, for merging what was published before.
      if (this.#state.at <= at) return
      this.#state.cancel()
    }
    const { clock } = this.#options
    const cancel = clock.after(at - clock.monotonic(), () => this.#ring())
    this.#enter({ kind: 'scheduled', at, cancel })
  }

  /** When a publish may begin that is wanted at this time: when it has its share, or nothing happens any more that it would slow down, or too much waits. */
  #turn(wanted: number): number {
    if (this.#options.compactor.fold.unpublishedEvents >= FULL_EVENTS) return this.#options.clock.monotonic()
    return Math.max(wanted, Math.min(this.#notBefore, this.#noticedAt + QUIET_MS))
  }

  #ring(): void {
    const { clock } = this.#options
    const turn = this.#turn(clock.monotonic())
    if (turn <= clock.monotonic()) void this.#begin(this.#isQuiet() && clock.monotonic() >= this.#noticedAt + QUIET_MS)
    else if (this.#state.kind === 'scheduled') {
      const cancel = clock.after(turn - clock.monotonic(), () => this.#ring())
      this.#enter({ kind: 'scheduled', at: turn, cancel })
    }
  }

  /** True if much has happened, and nothing since the last publish. */
  #isQuiet(): boolean {
    return this.#sinceQuiet >= MANY_EVENTS && this.#options.compactor.fold.unpublished === 0
  }

  #begin(isQuiet = false): Promise<void> {
    if (this.#state.kind === 'scheduled') this.#state.cancel()
    const done = (isQuiet ? this.#settle() : this.#publish()).finally(() => {
      if (this.#state.kind === 'publishing') this.#enter({ kind: 'idle' })
      this.#goOn()
    })
    this.#enter({ kind: 'publishing', done })
    return done
  }

  /** Merges what was published, so that rows of ended work leave memory. */
  async #settle(): Promise<void> {
    this.#sinceQuiet = 0
    if (this.#options.compactor.manifest.l0.length > 0) await this.#publish('base')
    this.#options.onQuiet?.()
  }

  async #publish(kind?: 'base'): Promise<void> {
    const { compactor, clock, onError, onPublished } = this.#options
    const before = compactor.manifest
    const started = clock.monotonic()
    // Whatever becomes durable from now on may be in the next publish only.
    const behindSince = this.#behindSince
    this.#behindSince = undefined
    let ended: number | undefined
    try {
      this.#sinceQuiet += compactor.fold.unpublishedEvents
      await compactor.publish(kind === undefined ? {} : { kind })
      ended = clock.monotonic()
      const lagMs = behindSince === undefined ? undefined : ended - behindSince
      if (compactor.manifest.publish !== before.publish) onPublished?.({ ok: true, ms: ended - started, lagMs })
      // The first publish takes longer than any other, because code is loaded and compiled.
      if (this.#publishes > 0) this.#notBefore = ended + SHARE * (ended - started)
      this.#publishes += 1
      await this.#pack()
      await this.#collect(compactor.manifest.base.publish !== before.base.publish)
    } catch (error) {
      if (ended === undefined) {
        this.#behindSince = behindSince
        onPublished?.({ ok: false, ms: clock.monotonic() - started, lagMs: undefined })
      }
      onError(error)
    }
  }

  async #collect(isMerged: boolean): Promise<void> {
    const { compactor, clock, collect } = this.#options
    const isFirst = this.#found !== undefined && isCollectionDue(this.#found, compactor.manifest, clock.now())
    if (!isFirst && (!isMerged || clock.monotonic() - this.#collectedAt < HOUR_MS)) return
    this.#found = undefined
    this.#collectedAt = clock.monotonic()
    await collect(isFirst ? BRIEF_COLLECTION : undefined)
  }

  /** One step, if nothing else is to be done, or if that has not been so for a while. */
  async #pack(): Promise<void> {
    const { compactor, clock, pack, delayMs = SECOND_MS } = this.#options
    const started = clock.monotonic()
    if (pack === undefined || (compactor.fold.unpublished > 0 && started - this.#packedAt < PACK_AT_LEAST_MS)) return
    this.#packedAt = started
    this.#packAfterMs = undefined
    if (await pack()) this.#packAfterMs = Math.max(delayMs, SHARE * (clock.monotonic() - started))
  }

  /** What happened meanwhile is published next; without that, what was published is merged when it is old enough. */
  #goOn(): void {
    const { compactor, clock, delayMs = SECOND_MS } = this.#options
    if (compactor.fold.unpublished > 0) {
      this.#schedule(this.#turn(clock.monotonic() + delayMs))
      return
    }
    if (this.#packAfterMs !== undefined) this.#schedule(clock.monotonic() + this.#packAfterMs)
    const [oldest] = compactor.manifest.l0
    if (this.#isQuiet()) this.#schedule(this.#noticedAt + QUIET_MS)
    if (oldest === undefined) return
    const { max_age_ms } = compactor.manifest.l0_limits
    // By the wall clock, which may have been set meanwhile: never later than it would be without that.
    const age = clock.now() - toMs(oldest.published_at)
    this.#schedule(clock.monotonic() + Math.min(Math.max(max_age_ms - age, SECOND_MS), max_age_ms))
  }
}
