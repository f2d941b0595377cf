import { MINUTE_MS } from '../../lib/time.ts'
import type { AlarmClock } from '../../ports/clock.ts'

/** A clock that was set is noticed within this time. */
const MAX_SLEEP_MS = MINUTE_MS
/** How long before it rings there is time to prepare: some times as long as two thousand ticks take. */
const PREPARE_MS = 400

interface WakeUpOptions {
  readonly clock: AlarmClock
  /** Called shortly before it rings, with when it will. */
  readonly prepare: (at: number) => void
  readonly ring: () => void
}

/** Rings when the controllers want to be asked although nothing happened, or earlier. */
export class WakeUp {
  readonly #options: WakeUpOptions
  #cancel: (() => void) | undefined

  constructor(options: WakeUpOptions) {
    this.#options = options
  }

  set(at: number): void {
    this.cancel()
    if (at === Number.POSITIVE_INFINITY) return
    const { clock, prepare, ring } = this.#options
    const left = at - clock.now()
    if (left <= PREPARE_MS || left > MAX_SLEEP_MS) this.#cancel = clock.after(Math.min(MAX_SLEEP_MS, Math.max(1, left)), ring)
    else
      this.#cancel = clock.after(left - PREPARE_MS, () => {
        prepare(at)
        this.#cancel = clock.after(Math.max(1, at - clock.now()), ring)
      })
  }

  cancel(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}
