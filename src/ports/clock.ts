/** The time of the outside world. Injected everywhere, so that tests and simulations choose it. */
export interface Clock {
  /** Milliseconds since 1970, UTC. */
  now(): number
  /** Resolves after `ms`; with a virtual clock, when the test advances it. */
  sleep(ms: number): Promise<void>
}

/** A clock that can also measure and ring. */
export interface AlarmClock extends Clock {
  /** Milliseconds since some moment. Unlike `now`, it never goes back and never jumps, and it goes on while the process is paused. */
  monotonic(): number
  /** Makes the call after `ms`, unless the function it returns is called first. Keeps no process alive. */
  after(ms: number, call: () => void): () => void
}

/** The longest delay that Node's timers take; a longer one fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1
