/** A response of server-sent events. It takes no more from its source than the caller takes from it, so that a slow caller costs no memory. */
export function eventStream(frames: AsyncIterable<Uint8Array>, hangUp: AbortController, stalls: Stalls): Response {
  const iterator = frames[Symbol.asyncIterator]()
  let cancelStall: () => void = () => undefined
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        cancelStall()
        const next = await iterator.next()
        if (next.done) {
          controller.close()
          return
        }
        controller.enqueue(next.value)
        // What is not taken in time is never taken: the caller is cut off, and goes on behind the last event that it has seen.
        cancelStall = stalls.after(STALLED_MS, () => {
          hangUp.abort()
          controller.error(new Error('the reader takes nothing'))
        })
      },
      cancel() {
        cancelStall()
        hangUp.abort()
        void iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' } })
}

/** Longer than a network that works is silent, and short enough that connections that are dead do not pile up. */
const STALLED_MS = 60_000

export interface Stalls {
  after(ms: number, call: () => void): () => void
}
