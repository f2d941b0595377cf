/** Time as the outside world tells it. Injected everywhere, so that tests and simulations choose it. */
export interface Clock {
  /** Milliseconds since 1970, UTC. */
  now(): number
  /** Resolves after `ms`; with a virtual clock, when the test says so. */
  sleep(ms: number): Promise<void>
}

/** A clock that can also measure and ring. */
export interface AlarmClock extends Clock {
  /** Milliseconds since some moment. Unlike `now` it never goes back and never jumps; it goes on while the process is paused. */
  monotonic(): number
  /** Calls after `ms`, unless what it returns is called first. Keeps no process alive. */
  after(ms: number, call: () => void): () => void
}

/** The longest that a timer of Node's can wait; longer ones fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1

export const systemClock: AlarmClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  after: (ms, call) => {
    const timer = setTimeout(call, Math.min(Math.max(0, ms), MAX_TIMER_MS))
    timer.unref()
    return () => clearTimeout(timer)
  },
}
