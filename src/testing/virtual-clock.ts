import type { AlarmClock } from '../ports/clock.ts'

interface Alarm {
  readonly at: number
  readonly order: number
  readonly call: () => void
}

/** Time that moves only when the test advances it. */
export class VirtualClock implements AlarmClock {
  #now: number
  /** The sum of all jumps of the wall clock. */
  #jumped = 0
  #order = 0
  readonly #alarms = new Set<Alarm>()

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#now = startMs
  }

  now(): number {
    return this.#now + this.#jumped
  }

  monotonic(): number {
    return this.#now
  }

  /** Sets the wall clock forward, or back. No time passes, and no alarm rings. */
  jump(ms: number): void {
    this.#jumped += ms
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve))
  }

  after(ms: number, call: () => void): () => void {
    const alarm: Alarm = { at: this.#now + Math.max(0, ms), order: this.#order++, call }
    this.#alarms.add(alarm)
    return () => this.#alarms.delete(alarm)
  }

  /** Time passes while the process is stopped: alarms that fall due meanwhile ring when it goes on. */
  stop(ms: number): void {
    this.#now += ms
  }

  /** Moves on by `ms`, ringing every alarm on the way and letting each finish what it begins. */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms
    for (;;) {
      await runPending()
      const next = [...this.#alarms].sort((a, b) => a.at - b.at || a.order - b.order)[0]
      if (next === undefined || next.at > until) break
      this.#alarms.delete(next)
      this.#now = Math.max(this.#now, next.at)
      next.call()
    }
    this.#now = until
    await runPending()
  }
}

/** Lets everything run that needs no time. */
async function runPending(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
}
