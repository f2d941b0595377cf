import { SECOND_MS } from '../../lib/time.ts'
import type { AlarmClock } from '../../ports/clock.ts'

/** So many seconds in which nothing gets on are a standstill. */
const STANDSTILL_SECONDS = 10

export interface Patience {
  readonly clock: AlarmClock
  /** Changes whenever something becomes durable. */
  progress(): number
  /** Called at a standstill: returns the error for the caller, or undefined to let the caller wait on. */
  atStandstill(): Error | undefined
}

/**
 * Waits for an answer for as long as anything gets on, and gives up at a standstill. It counts seconds one by one, as this process lives them: a
 * process that was stopped, or busy with a large plan, has kept the store waiting and not the reverse.
 */
export async function patiently<T>(work: Promise<T>, { clock, progress, atStandstill }: Patience): Promise<T> {
  const givenUp = Promise.withResolvers<never>()
  let before = progress()
  let silent = 0
  const next = (): (() => void) =>
    clock.after(SECOND_MS, () => {
      const now = progress()
      silent = now === before ? silent + 1 : 0
      before = now
      const error = silent === STANDSTILL_SECONDS ? atStandstill() : undefined
      if (error === undefined) cancel = next()
      else givenUp.reject(error)
    })
  let cancel = next()
  return await Promise.race([work, givenUp.promise]).finally(() => cancel())
}
