import { type AlarmClock, MAX_TIMER_MS } from '../../ports/clock.ts'

/** The clock of this machine. */
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
