import type { DispatchEnvelope } from '../contract/dispatch.ts'
import type { AlarmClock } from '../ports/clock.ts'
import type { TaskCallbacks, WorkRequest } from './worker-contract.ts'

export interface WorkWait {
  readonly waitMs: number
  readonly clock: AlarmClock
  /** A worker that hangs up must not be given work, because it would not do it. */
  readonly hungUp: AbortSignal
}

/** Polls for work until there is some, the time is over, or the worker has gone. */
export async function waitForWork(
  callbacks: Pick<TaskCallbacks, 'takeWork' | 'onWork'>,
  request: WorkRequest,
  { waitMs, clock, hungUp }: WorkWait,
): Promise<readonly DispatchEnvelope[]> {
  const until = clock.now() + waitMs
  let news = Promise.withResolvers<void>()
  // Listening begins before the first question: work that comes between question and answer is not missed.
  const stopListening = callbacks.onWork(() => news.resolve())
  const stopAlarm = clock.after(waitMs, () => news.resolve())
  const onHangUp = () => news.resolve()
  hungUp.addEventListener('abort', onHangUp)
  try {
    while (!hungUp.aborted) {
      const work = await callbacks.takeWork(request)
      if (work.length > 0 || clock.now() >= until) return work
      await news.promise
      news = Promise.withResolvers<void>()
    }
    return []
  } finally {
    stopListening()
    stopAlarm()
    hungUp.removeEventListener('abort', onHangUp)
  }
}
