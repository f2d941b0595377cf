import { SECOND_MS } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import { MAX_LAG_MS } from '../../model/controller.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { Listening, Notifier } from '../../ports/notifier.ts'
import { Paths, type Scope } from '../paths.ts'
import type { Compactor } from '../publish/compactor.ts'

export interface SegmentFeedOptions {
  readonly compactor: Compactor
  readonly scope: Scope
  readonly clock: AlarmClock
  /** Absent where no other process is expected to write: then the ledger is listed only before a controller acts on an absence. */
  readonly notifier?: Notifier | undefined
  /** How often the ledger is listed if the notifier may miss segments. */
  readonly lookEveryMs?: number | undefined
  /** Called when segments of other processes were folded, or a look is over, with whether it has found any. */
  readonly onCaughtUp: (foundSome: boolean) => void
  /** Called when the ledger could not be read. It is read again later. */
  readonly onTrouble: (error: unknown) => void
}

const LOOK_EVERY_MS = 10 * SECOND_MS
/** Segments that could not be read, or may have been missed, are looked for again after this long: no segment is announced twice. */
const READ_AGAIN_MS = SECOND_MS

/** When the ledger was last listed, and whether an announcement may have been missed since. */
class LastLook {
  at: number
  /** When an announcement may have been missed; undefined once a look that began later is over. */
  #missedAt: number | undefined

  constructor(now: number) {
    this.at = now
  }

  get mayHaveMissed(): boolean {
    return this.#missedAt !== undefined
  }

  missed(now: number): void {
    this.#missedAt = now
  }

  /** A look is over. A segment that was missed after it began may lie in a folder that the look had already passed. */
  over(began: number): void {
    this.at = began
    if (this.#missedAt !== undefined && this.#missedAt < began) this.#missedAt = undefined
  }
}

/**
 * Tracks the segments that other processes wrote, and how far behind the leader is. It reads segments that were announced, and it looks:
 * it lists the ledger where announcements may be missed. Reading and looking go on side by side, each at most once at a time. After
 * `close`, neither begins again.
 */
export class SegmentFeed {
  readonly #options: SegmentFeedOptions
  readonly #paths: Paths
  /** Announced segments that are not folded yet, with the time of the announcement. */
  readonly #unread = new Map<string, number>()
  #listening: Listening | undefined
  #reading: Promise<void> | undefined
  #looking: Promise<void> | undefined
  readonly #lastLook: LastLook
  #cancelLook: (() => void) | undefined
  #closed = false

  private constructor(options: SegmentFeedOptions) {
    this.#options = options
    this.#paths = new Paths(options.scope)
    this.#lastLook = new LastLook(options.clock.monotonic())
  }

  /** Listens first and then looks once, so that no segment written in between is missed. */
  static async open(options: SegmentFeedOptions): Promise<SegmentFeed> {
    const feed = new SegmentFeed(options)
    feed.#listening = await options.notifier?.listen({
      onSegments: (segments) => feed.#announced(segments),
      onMissed: () => feed.#missed(),
    })
    try {
      const began = options.clock.monotonic()
      await options.compactor.catchUp()
      feed.#lastLook.over(began)
    } catch (error) {
      feed.close()
      throw error
    }
    feed.#scheduleLook()
    return feed
  }

  /**
   * The age of the oldest segment in the ledger that is not folded, as far as is known: that of the oldest announced one, or the time
   * since the last look if a look is due. Damaged segments do not count.
   */
  get lagMs(): number {
    const { clock } = this.#options
    const [now, measured] = [clock.now(), clock.monotonic()]
    let lag = this.#isLookDue ? measured - this.#lastLook.at : 0
    for (const [ulid, announcedAt] of this.#unread) lag = Math.max(lag, now - ulidTime(ulid), measured - announcedAt)
    return lag
  }

  /** True if it is safe to act on an absence. Begins a look if one is due; `onCaughtUp` is called when it is over. */
  isCaughtUp(): boolean {
    if (!this.#isLookDue) return this.lagMs <= MAX_LAG_MS
    void this.look()
    return false
  }

  announce(segment: string): void {
    this.#options.notifier?.announce(segment)
  }

  /** Looks at the ledger, once at a time. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
      this.#scheduleLook()
    })
    return this.#looking
  }

  close(): void {
    this.#closed = true
    this.#cancelLook?.()
    this.#listening?.close()
  }

  get #isLookDue(): boolean {
    const { clock, lookEveryMs = LOOK_EVERY_MS } = this.#options
    if (this.#lastLook.mayHaveMissed) return true
    return this.#listening?.missesNothing !== true && clock.monotonic() - this.#lastLook.at > lookEveryMs
  }

  #missed(): void {
    if (this.#closed) return
    this.#lastLook.missed(this.#options.clock.monotonic())
    void this.look()
  }

  #announced(segments: readonly string[]): void {
    if (this.#closed) return
    const { compactor, clock } = this.#options
    for (const ulid of segments) {
      if (!compactor.fold.has(ulid) && !this.#unread.has(ulid)) this.#unread.set(ulid, clock.monotonic())
    }
    if (this.#unread.size > 0) this.#reading ??= this.#read()
  }

  async #read(): Promise<void> {
    const { compactor, clock, onCaughtUp, onTrouble } = this.#options
    try {
      while (this.#unread.size > 0 && !this.#closed) {
        const ulids = [...this.#unread.keys()]
        await compactor.fold.applyPaths(ulids.map((ulid) => this.#paths.segment(ulid)))
        // A damaged segment is reported elsewhere, and must not hold up the others.
        for (const ulid of ulids) this.#unread.delete(ulid)
        if (!this.#closed) onCaughtUp(true)
      }
    } catch (error) {
      onTrouble(error)
      clock.after(READ_AGAIN_MS, () => this.#announced([]))
    } finally {
      this.#reading = undefined
    }
  }

  async #look(): Promise<void> {
    const { compactor, clock, onCaughtUp, onTrouble } = this.#options
    if (this.#closed) return
    const began = clock.monotonic()
    try {
      const found = await compactor.catchUp()
      this.#lastLook.over(began)
      for (const [ulid, announcedAt] of this.#unread) if (announcedAt <= began) this.#unread.delete(ulid)
      if (!this.#closed) onCaughtUp(found > 0)
    } catch (error) {
      onTrouble(error)
    }
  }

  /** Looks from time to time, if other processes write and announcements may be missed. */
  #scheduleLook(): void {
    const { clock, notifier, lookEveryMs = LOOK_EVERY_MS } = this.#options
    this.#cancelLook?.()
    this.#cancelLook = undefined
    if (this.#closed || notifier === undefined) return
    this.#cancelLook = clock.after(this.#lastLook.mayHaveMissed ? READ_AGAIN_MS : lookEveryMs, () => {
      // While the notifier misses nothing no look is needed, but that may change.
      if (this.#listening?.missesNothing === true && !this.#lastLook.mayHaveMissed) this.#scheduleLook()
      else void this.look()
    })
  }
}
