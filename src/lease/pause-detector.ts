import type { AlarmClock } from '../ports/clock.ts'

/**
 * Notices that this process did not run for a while: stopped by a signal, blocked by its own work, or on a machine that slept.
 * It reads the clocks at regular ticks and with every call, so the first call after a pause returns the right answer.
 * Both clocks count: the monotonic one stands still while a machine sleeps, and the wall clock may be set.
 */
export class PauseDetector {
  readonly #clock: AlarmClock
  readonly #limitMs: number
  readonly #everyMs: number
  readonly #onTick: () => void
  #monotonic = 0
  #wall = 0
  #wasPaused = false
  #cancel: () => void

  /** A gap of `limitMs` between two ticks, which come every `everyMs`, is a pause. */
  constructor(clock: AlarmClock, { limitMs, everyMs, onTick }: { limitMs: number; everyMs: number; onTick: () => void }) {
    this.#clock = clock
    this.#limitMs = limitMs
    this.#everyMs = everyMs
    this.#onTick = onTick
    this.#note()
    this.#cancel = this.#next()
  }

  /** True from the first question after a pause until `forgive`. */
  get wasPaused(): boolean {
    this.#measure()
    return this.#wasPaused
  }

  /** The holder has made sure that nothing happened during the pause. */
  forgive(): void {
    this.#note()
    this.#wasPaused = false
  }

  stop(): void {
    this.#cancel()
  }

  #next(): () => void {
    return this.#clock.after(this.#everyMs, () => {
      this.#measure()
      this.#note()
      this.#cancel = this.#next()
      this.#onTick()
    })
  }

  #note(): void {
    this.#monotonic = this.#clock.monotonic()
    this.#wall = this.#clock.now()
  }

  #measure(): void {
    const passed = this.#clock.monotonic() - this.#monotonic
    // A wall clock that was set back may hide a sleep, so a jump in either direction counts.
    const shown = Math.abs(this.#clock.now() - this.#wall)
    if (Math.max(passed, shown) >= this.#limitMs) this.#wasPaused = true
  }
}
