import path from 'node:path'
import { setImmediate as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { encodeFile, type FileCopy } from './file-copy.ts'

export interface Encoder {
  encode(copy: FileCopy): Promise<Uint8Array>
}

/** Fewer rows are encoded before a thread has been told of them. */
const WORTH_A_HOP = 500

/** Room for a file of some thousand rows; as much as this process has would only fill up with garbage between two publishes. */
const YOUNG_MB = 32

const PROGRAM = path.join(import.meta.dirname, `encoder-thread${path.extname(import.meta.filename)}`)

/** Encodes in this thread, letting others have their turn after each row group. */
export const encoderHere: Encoder = { encode: encodeHere }

async function encodeHere(copy: FileCopy): Promise<Uint8Array> {
  const steps = encodeFile(copy)
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value
    await pause()
  }
}

/**
 * A thread that encodes files, one after the other. A busy orchestrator has one thread too few: what this takes off it is as
 * much as folding. It starts with the first file that is worth it, and until it is ready files are encoded here; so are those it
 * cannot do, which shows what stands in the way. See ADR 0021.
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
  /** In the order in which files were sent, which is that of the answers. */
  const waiting: PromiseWithResolvers<Uint8Array | undefined>[] = []

  function start(): void {
    // Without the options of this process, which may be a debugger's or a test runner's.
    const started = new Worker(program, {
      execArgv: [],
      name: 'servo-encoder',
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    })
    thread = started
    started.on('online', () => {
      isReady = true
    })
    started.on('message', (bytes: Uint8Array | undefined) => answer(bytes))
    // It must not bring the process down; that it ended is heard of below.
    started.on('error', () => undefined)
    started.on('exit', () => {
      isReady = false
      while (waiting.length > 0) answer(undefined)
    })
    // Nor must it keep the process alive. Last, because listening to it does.
    started.unref()
  }

  function answer(bytes: Uint8Array | undefined): void {
    const next = waiting.shift()
    if (waiting.length === 0) thread?.unref()
    next?.resolve(bytes)
  }

  async function send(copy: FileCopy): Promise<Uint8Array | undefined> {
    thread?.postMessage(copy)
    const answered = Promise.withResolvers<Uint8Array | undefined>()
    waiting.push(answered)
    // A publish waits for it now, and a process that ends meanwhile would end in the middle.
    thread?.ref()
    return await answered.promise
  }

  return {
    get isReady() {
      return isReady
    },
    async encode(copy) {
      if (copy.rows < worthAHop) return await encodeHere(copy)
      if (thread === undefined) start()
      if (!isReady) return await encodeHere(copy)
      // What cannot be sent has something in it that no column can hold.
      const sent = await send(copy).catch(() => undefined)
      return sent ?? (await encodeHere(copy))
    },
  }
}
