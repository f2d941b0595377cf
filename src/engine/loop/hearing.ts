import { SECOND_MS } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import { MAX_LAG_MS } from '../../model/controller.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { Listening, Notifier } from '../../ports/notifier.ts'
import { Paths, type Scope } from '../paths.ts'
import type { Compactor } from '../publish/compactor.ts'

export interface HearingOptions {
  readonly compactor: Compactor
  readonly scope: Scope
  readonly clock: AlarmClock
  /** Absent where no other process is expected to write: then the ledger is looked at only before acting on what did not happen. */
  readonly notifier?: Notifier | undefined
  /** How often the ledger is looked at where not everything is heard of. */
  readonly lookEveryMs?: number | undefined
  /** Something of other processes was folded, or it is known now that there is nothing. */
  readonly onCaughtUp: () => void
  /** The ledger could not be read. It is tried again. */
  readonly onTrouble: (error: unknown) => void
}

const LOOK_EVERY_MS = 10 * SECOND_MS
/** What could not be read, or may have been missed, is looked for again after this long: it will not be announced a second time. */
const READ_AGAIN_MS = SECOND_MS

/** When the ledger was last looked at, and whether that was since something may have gone unheard. */
class LastLook {
  at: number
  /** Since when something may have gone unheard; undefined once a look that began later is over. */
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

  /** A look that began then is over. A segment missed meanwhile may be in a folder that the look had already passed. */
  over(began: number): void {
    this.at = began
    if (this.#missedAt !== undefined && this.#missedAt < began) this.#missedAt = undefined
  }
}

/**
 * How the leader learns what other processes wrote, and how far behind it is. Two things go on side by side, each once at a time: it
 * reads the segments it heard of, and looks at the ledger where it may not hear of all. Once it is closed, neither begins again.
 */
export class Hearing {
  readonly #options: HearingOptions
  readonly #paths: Paths
  /** Segments heard of and not folded yet, with when they were heard of. */
  readonly #unread = new Map<string, number>()
  #listening: Listening | undefined
  #reading: Promise<void> | undefined
  #looking: Promise<void> | undefined
  readonly #lastLook: LastLook
  #cancelLook: (() => void) | undefined
  #closed = false

  private constructor(options: HearingOptions) {
    this.#options = options
    this.#paths = new Paths(options.scope)
    this.#lastLook = new LastLook(options.clock.monotonic())
  }

  /** Begins to listen, then looks once: nothing that is written between the two goes unheard. */
  static async open(options: HearingOptions): Promise<Hearing> {
    const hearing = new Hearing(options)
    hearing.#listening = await options.notifier?.listen({
      heard: (segments) => hearing.#heard(segments),
      missed: () => hearing.#missed(),
    })
    try {
      const began = options.clock.monotonic()
      await options.compactor.catchUp()
      hearing.#lastLook.over(began)
    } catch (error) {
      hearing.close()
      throw error
    }
    hearing.#scheduleLook()
    return hearing
  }

  /**
   * The age of the oldest segment that is in the ledger and not folded, as far as can be told: of those heard of, and where
   * not everything is heard of, the time since the last look if that is long ago. Damaged segments do not count.
   */
  get lagMs(): number {
    const { clock } = this.#options
    const [now, measured] = [clock.now(), clock.monotonic()]
    let lag = this.#isLookDue ? measured - this.#lastLook.at : 0
    for (const [ulid, heardAt] of this.#unread) lag = Math.max(lag, now - ulidTime(ulid), measured - heardAt)
    return lag
  }

  /** True if it is safe to act on the absence of something. If not, this looks, and says so by `onCaughtUp`. */
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
    return this.#listening?.hearsEverything !== true && clock.monotonic() - this.#lastLook.at > lookEveryMs
  }

  #missed(): void {
    if (this.#closed) return
    this.#lastLook.missed(this.#options.clock.monotonic())
    void this.look()
  }

  #heard(segments: readonly string[]): void {
    if (this.#closed) return
    const { compactor, clock } = this.#options
    for (const ulid of segments) {
      if (!compactor.isFolded(ulid) && !this.#unread.has(ulid)) this.#unread.set(ulid, clock.monotonic())
    }
    if (this.#unread.size > 0) this.#reading ??= this.#read()
  }

  async #read(): Promise<void> {
    const { compactor, clock, onCaughtUp, onTrouble } = this.#options
    try {
      while (this.#unread.size > 0 && !this.#closed) {
        const ulids = [...this.#unread.keys()]
        await compactor.applyPaths(ulids.map((ulid) => this.#paths.segment(ulid)))
        // What cannot be read is reported elsewhere; it holds up nothing.
        for (const ulid of ulids) this.#unread.delete(ulid)
        if (!this.#closed) onCaughtUp()
      }
    } catch (error) {
      onTrouble(error)
      clock.after(READ_AGAIN_MS, () => this.#heard([]))
    } finally {
      this.#reading = undefined
    }
  }

  async #look(): Promise<void> {
    const { compactor, clock, onCaughtUp, onTrouble } = this.#options
    if (this.#closed) return
    const began = clock.monotonic()
    try {
      await compactor.catchUp()
      this.#lastLook.over(began)
      for (const [ulid, heardAt] of this.#unread) if (heardAt <= began) this.#unread.delete(ulid)
      if (!this.#closed) onCaughtUp()
    } catch (error) {
      onTrouble(error)
    }
  }

  /** Where other processes write and not everything is heard of, the ledger is looked at from time to time. */
  #scheduleLook(): void {
    const { clock, notifier, lookEveryMs = LOOK_EVERY_MS } = this.#options
    this.#cancelLook?.()
    this.#cancelLook = undefined
    if (this.#closed || notifier === undefined) return
    this.#cancelLook = clock.after(this.#lastLook.mayHaveMissed ? READ_AGAIN_MS : lookEveryMs, () => {
      // Costs nothing where everything is heard of, but that may end.
      if (this.#listening?.hearsEverything === true && !this.#lastLook.mayHaveMissed) this.#scheduleLook()
      else void this.look()
    })
  }
}
