import { HOUR_MS, SECOND_MS, toMs } from '../../lib/time.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { Compactor } from './compactor.ts'

export interface PublisherOptions {
  readonly compactor: Compactor
  readonly clock: AlarmClock
  /** Removes what no kept manifest names; called about once an hour while there is something to publish. */
  readonly collect: () => Promise<unknown>
  readonly onError: (error: unknown) => void
  /** How long facts wait for others before tables are written. Readers that cannot wait read the ledger's tail. */
  readonly delayMs?: number
}

/** Publishing shall take at most one part in this many of the time, however large the tables are. */
const SHARE = 8

/**
 * Publishes behind the hot path: a moment after something happened, less often the longer it takes, and once more when
 * what was published has to be merged although nothing happens. When there is nothing to publish it does nothing at all.
 */
export class Publisher {
  readonly #options: PublisherOptions
  #cancel: (() => void) | undefined
  #alarmAt = Number.POSITIVE_INFINITY
  #running: Promise<void> | undefined
  /** When publishing again would not take more than its share. */
  #notBefore = 0
  #isWarm = false
  #collectedAt: number
  #closed = false

  constructor(options: PublisherOptions) {
    this.#options = options
    this.#collectedAt = options.clock.now()
  }

  /** Something is durable that no table shows yet. */
  noticed(): void {
    if (this.#running !== undefined) return
    const { clock, delayMs = SECOND_MS } = this.#options
    const now = clock.now()
    const at = Math.max(now + delayMs, this.#notBefore)
    // The alarm may be set for later, for merging what was published before.
    if (at < this.#alarmAt) this.#schedule(at - now)
  }

  /** Writes what there is now. */
  async flush(): Promise<void> {
    this.#unschedule()
    await this.#running
    await this.#publish()
    this.#goOn()
  }

  /** Begins no publish any more. */
  stop(): void {
    this.#closed = true
    this.#unschedule()
  }

  /** The same, and waits for what is being written. */
  async close(): Promise<void> {
    this.stop()
    await this.#running
  }

  #schedule(delayMs: number): void {
    if (this.#closed) return
    this.#unschedule()
    this.#alarmAt = this.#options.clock.now() + delayMs
    this.#cancel = this.#options.clock.after(delayMs, () => {
      this.#unschedule()
      this.#running = this.#publish().finally(() => {
        this.#running = undefined
        this.#goOn()
      })
    })
  }

  #unschedule(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#alarmAt = Number.POSITIVE_INFINITY
  }

  async #publish(): Promise<void> {
    const { compactor, clock, collect, onError } = this.#options
    const before = compactor.manifest.base.publish
    const started = clock.now()
    try {
      await compactor.publish()
      const ended = clock.now()
      // The first takes longer than any other, because code is loaded and compiled.
      if (this.#isWarm) this.#notBefore = ended + SHARE * (ended - started)
      this.#isWarm = true
      if (compactor.manifest.base.publish === before || clock.now() - this.#collectedAt < HOUR_MS) return
      this.#collectedAt = clock.now()
      await collect()
    } catch (error) {
      onError(error)
    }
  }

  #goOn(): void {
    const { compactor, clock } = this.#options
    if (compactor.unpublished > 0) {
      this.noticed()
      return
    }
    const [oldest] = compactor.manifest.l0
    if (oldest === undefined) return
    const { max_age_ms } = compactor.manifest.l0_limits
    this.#schedule(Math.max(SECOND_MS, toMs(oldest.published_at) + max_age_ms - clock.now()))
  }
}
