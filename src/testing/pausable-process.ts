import type { AlarmClock } from '../ports/clock.ts'

/** A part of this process that can be stopped as SIGSTOP stops a whole one: time passes for it, and it is called only when it goes on. */
export class PausableProcess {
  readonly clock: AlarmClock
  readonly #held: (() => void)[] = []
  #isPaused = false

  constructor(clock: AlarmClock) {
    this.clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      sleep: (ms) => new Promise((resolve) => this.clock.after(ms, resolve)),
      after: (ms, call) => clock.after(ms, () => this.call(call)),
    }
  }

  /** Calls now, or when it goes on. */
  call(what: () => void): void {
    if (this.#isPaused) this.#held.push(what)
    else what()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    for (const call of this.#held.splice(0)) call()
  }
}
