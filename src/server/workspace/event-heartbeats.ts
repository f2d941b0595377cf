import type { AlarmClock } from '../../ports/clock.ts'

/** A comment of an event stream: it says that the connection is alive, and nothing else. */
const HEARTBEAT = Buffer.from(': heartbeat\n\n')

/** The same, with a comment whenever nothing came for a while. The first goes out at once, so that the caller knows it is heard. */
export async function* withHeartbeats(
  frames: AsyncGenerator<Uint8Array>,
  clock: Pick<AlarmClock, 'after'>,
  everyMs: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield HEARTBEAT
    let next = frames.next()
    while (!signal.aborted) {
      const quiet = Promise.withResolvers<undefined>()
      const cancel = clock.after(everyMs, () => quiet.resolve(undefined))
      const come = await Promise.race([next, quiet.promise]).finally(cancel)
      if (come === undefined) yield HEARTBEAT
      else if (come.done) return
      else {
        yield come.value
        next = frames.next()
      }
    }
  } finally {
    // It may wait for news: the signal, which its caller gives, ends that.
    void frames.return(undefined)
  }
}
