import path from 'node:path'
import { Worker } from 'node:worker_threads'

/** An object to be created under `target`, by way of `temp`, in the open folder `folder`. */
export interface WriteOrder {
  readonly temp: string
  readonly target: string
  readonly bytes: Uint8Array
  readonly folder: number
}

/**
 * `not_written`: it can be done again, and what stood in the way shows then. Should the thread have ended after giving the object
 * its name, the second try finds it there, whole and synced, and syncs its folder.
 */
export type WriteOutcome = 'written' | 'not_written' | { readonly error: Error }

export interface ObjectWriter {
  /** Undefined when it cannot begin at once. */
  write(order: WriteOrder): Promise<WriteOutcome> | undefined
}

type ThreadState =
  | { readonly kind: 'absent' | 'starting' | 'ended' }
  | { readonly kind: 'ready'; readonly thread: Worker }
  | { readonly kind: 'writing'; readonly thread: Worker; readonly answered: PromiseWithResolvers<WriteOutcome> }

/** A process that writes less than this is better off without: a thread takes some 30 ms to start. */
const WORTH_A_THREAD = 100
/** Copied to the thread. What is larger takes so long to sync that hops do not matter. */
const MAX_BYTES = 1 << 20

/**
 * A thread that writes whole objects, one at a time. Done the usual way a durable create is four calls in libuv's threads,
 * each of which begins and ends with waiting until this process looks up from what it is doing; in a busy one that
 * was four fifths of the time between a fact and its being durable. A caller that finds the thread busy writes the usual way.
 * The thread is absent until enough is written, then starts, and is ready and writing by turns until it ends.
 */
export function writerThread(): ObjectWriter {
  let state: ThreadState = { kind: 'absent' }
  let wanted = 0

  function start(): void {
    const file = path.join(import.meta.dirname, `writer-thread${path.extname(import.meta.filename)}`)
    // Without the options of this process, which may be a debugger's or a test runner's.
    const thread = new Worker(file, { execArgv: [], name: 'servo-writer' })
    state = { kind: 'starting' }
    thread.on('online', () => {
      state = { kind: 'ready', thread }
    })
    thread.on('message', (outcome: WriteOutcome) => answer(outcome))
    // The error must not end the process; the handler of the exit below deals with it.
    thread.on('error', () => undefined)
    thread.on('exit', () => {
      answer('not_written')
      state = { kind: 'ended' }
    })
    // Nor must it keep the process alive. Last, because listening to it does.
    thread.unref()
  }

  function answer(outcome: WriteOutcome): void {
    if (state.kind !== 'writing') return
    const { thread, answered } = state
    state = { kind: 'ready', thread }
    thread.unref()
    answered.resolve(outcome)
  }

  return {
    write(order) {
      wanted += 1
      if (wanted === WORTH_A_THREAD) start()
      if (state.kind !== 'ready' || order.bytes.length > MAX_BYTES) return undefined
      const { thread } = state
      const answered = Promise.withResolvers<WriteOutcome>()
      state = { kind: 'writing', thread, answered }
      // The caller waits for it now, and a process that ends meanwhile would end in the middle.
      thread.ref()
      thread.postMessage(order)
      return answered.promise
    },
  }
}
