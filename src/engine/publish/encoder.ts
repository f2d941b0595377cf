import path from 'node:path'
import { setImmediate as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { encodeFile, type FileCopy } from './file-copy.ts'
import { copyOfAll, type FilesToMerge } from './merge-copies.ts'

export interface Encoder {
  /** Ends the thread, if there is one, with the memory it holds. The next large file starts another. */
  rest?(): void
  encode(copy: FileCopy): Promise<Uint8Array>
  /** One sorted file of several that have no key in common. */
  merge(files: FilesToMerge): Promise<Uint8Array>
}

/** Fewer rows than this are encoded here sooner than they could be sent to a thread. */
const WORTH_A_HOP = 500

/** Room for a file of some thousand rows. With the default of a process it would only fill with garbage between two publishes. */
const YOUNG_MB = 32

const PROGRAM = path.join(import.meta.dirname, `encoder-thread${path.extname(import.meta.filename)}`)

/** Encodes in this thread, letting others have their turn after each row group. */
export const encoderHere: Encoder = { encode: encodeHere, merge: mergeHere }

async function mergeHere(files: FilesToMerge): Promise<Uint8Array> {
  return await encodeHere(await copyOfAll(files, () => pause()))
}

async function encodeHere(copy: FileCopy): Promise<Uint8Array> {
  const steps = encodeFile(copy)
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value
    await pause()
  }
}

/**
 * A thread that encodes files, one after the other. A busy orchestrator is short of one thread, and encoding takes it as long as
 * folding. The thread starts with the first file that is worth it, which waits until it is ready. Files that the thread fails at are
 * encoded here, so that the caller gets the error. See ADR 0021.
 */
export function encoderThread({
  worthAHop = WORTH_A_HOP,
  program = PROGRAM,
}: {
  worthAHop?: number
  program?: string | URL
} = {}): Encoder & { readonly isReady: boolean } {
  let thread: Worker | undefined
  let isReady = false
  /** Resolves when the thread is ready, or has failed to start. */
  let started = Promise.resolve()
  /** In the order in which files were sent, which is that of the answers. */
  const waiting: PromiseWithResolvers<Uint8Array | undefined>[] = []

  function start(): void {
    // Without the options of this process, which may be a debugger's or a test runner's.
    const worker = new Worker(program, {
      execArgv: [],
      name: 'servo-encoder',
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    })
    thread = worker
    const settled = Promise.withResolvers<void>()
    started = settled.promise
    worker.on('online', () => {
      isReady = true
      settled.resolve()
    })
    worker.on('message', (bytes: Uint8Array | undefined) => answer(bytes))
    // An error of the thread must not bring the process down; `exit` follows, and is handled below.
    worker.on('error', () => undefined)
    worker.on('exit', () => {
      settled.resolve()
      // Another one may have taken its place.
      if (thread !== worker) return
      isReady = false
      while (waiting.length > 0) answer(undefined)
    })
    // Nor must the thread keep the process alive. This comes last, because adding a listener would undo it.
    worker.unref()
  }

  function answer(bytes: Uint8Array | undefined): void {
    const next = waiting.shift()
    if (waiting.length === 0) thread?.unref()
    next?.resolve(bytes)
  }

  /** Sends work to the thread if it is worth it; undefined if this thread has to do it. */
  async function handOver(work: FileCopy | FilesToMerge): Promise<Uint8Array | undefined> {
    if (work.rows < worthAHop) return undefined
    if (thread === undefined) start()
    // As in `send`: the process must not end in the middle of a publish.
    thread?.ref()
    await started
    if (waiting.length === 0) thread?.unref()
    if (!isReady) return undefined
    // A copy that cannot be sent holds a value that no column can hold. Encoding it here throws the right error.
    return await send(work).catch(() => undefined)
  }

  async function send(work: FileCopy | FilesToMerge): Promise<Uint8Array | undefined> {
    thread?.postMessage(work)
    const answered = Promise.withResolvers<Uint8Array | undefined>()
    waiting.push(answered)
    // A publish waits for the thread now; without this, the process could end in the middle of it.
    thread?.ref()
    return await answered.promise
  }

  return {
    rest() {
      if (waiting.length > 0 || !isReady) return
      void thread?.terminate()
      thread = undefined
      isReady = false
    },
    get isReady() {
      return isReady
    },
    encode: async (copy) => (await handOver(copy)) ?? (await encodeHere(copy)),
    merge: async (files) => (await handOver(files)) ?? (await mergeHere(files)),
  }
}
