import { isDeepStrictEqual } from 'node:util'
import type { AlarmClock } from '../../ports/clock.ts'
import type { LeaderTiming } from './settings.ts'

export interface SweepsOptions {
  readonly clock: AlarmClock
  readonly timing: () => LeaderTiming
  /** Looks at every row again, if there is anything to repair. */
  readonly sweep: () => void
}

/** Has every row looked at again now and then, and knows by which timing they were looked at last. */
export class Sweeps {
  readonly #options: SweepsOptions
  #cancel: (() => void) | undefined
  #lastTiming: LeaderTiming | undefined

  constructor(options: SweepsOptions) {
    this.#options = options
  }

  /** From now on, or counted anew from now on. */
  schedule(): void {
    const { clock, timing, sweep } = this.#options
    this.#cancel?.()
    this.#lastTiming = timing()
    this.#cancel = clock.after(this.#lastTiming.sweepMs, () => {
      sweep()
      this.schedule()
    })
  }

  /** True if rows were last looked at by another timing than the one that holds now. */
  get isOutdated(): boolean {
    return !isDeepStrictEqual(this.#options.timing(), this.#lastTiming)
  }

  stop(): void {
    this.#cancel?.()
  }
}
