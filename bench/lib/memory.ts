import { setImmediate } from 'node:timers/promises'

export interface Memory {
  readonly heap: number
  /** Bytes of buffers, which are not on the heap. */
  readonly buffers: number
  readonly rss: number
}

/** What is really held: after collections, the second of which takes what the first one's finalizers let go. */
export async function memory(): Promise<Memory> {
  for (let round = 0; round < 3; round++) {
    globalThis.gc?.()
    await setImmediate()
  }
  const { heapUsed, arrayBuffers, rss } = process.memoryUsage()
  return { heap: heapUsed, buffers: arrayBuffers, rss }
}
