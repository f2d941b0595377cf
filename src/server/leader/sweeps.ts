import { isDeepStrictEqual } from 'node:util'
import type { AlarmClock } from '../../ports/clock.ts'
import type { LeaderTiming } from './settings.ts'

export interface SweepsOptions {
  readonly clock: AlarmClock
  readonly timing: () => LeaderTiming
  /** Shows every row again, if there is anything to repair. */
  readonly sweep: () => void
}

/** Sweeps at intervals, and remembers the timing of the last sweep. */
export class Sweeps {
  readonly #options: SweepsOptions
  #cancel: (() => void) | undefined
  #lastTiming: LeaderTiming | undefined

  constructor(options: SweepsOptions) {
    this.#options = options
  }

  /** Starts the interval, or starts it again. */
  schedule(): void {
    const { clock, timing, sweep } = this.#options
    this.#cancel?.()
    this.#lastTiming = timing()
    this.#cancel = clock.after(this.#lastTiming.sweepMs, () => {
      sweep()
      this.schedule()
    })
  }

  /** True if the timing has changed since the last sweep. */
  get isOutdated(): boolean {
    return !isDeepStrictEqual(this.#options.timing(), this.#lastTiming)
  }

  stop(): void {
    this.#cancel?.()
  }
}
