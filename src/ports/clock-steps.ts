import type { AlarmClock } from './clock.ts'

/** A wall clock that has moved this much against the steady one was set. */
const STEP_MS = 1_000

/** Notices that the wall clock was set, ahead or back, because moments that were computed before are wrong then. */
export class ClockSteps {
  readonly #clock: Pick<AlarmClock, 'now' | 'monotonic'>
  /** How far the wall clock is ahead of the steady one. */
  #offset: number

  constructor(clock: Pick<AlarmClock, 'now' | 'monotonic'>) {
    this.#clock = clock
    this.#offset = clock.now() - clock.monotonic()
  }

  /** True if the clock was set since the last question. */
  wasSet(): boolean {
    const offset = this.#clock.now() - this.#clock.monotonic()
    const moved = Math.abs(offset - this.#offset)
    this.#offset = offset
    return moved >= STEP_MS
  }
}
