import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { encodeFile, type FileCopy } from './file-copy.ts'

/*
 * Encodes one file after the other. See encoder.ts for why.
 */

/** Tables can wait: running tasks and writing the ledger come first. */
const BEHIND_THE_OTHERS = 10

// Linux applies this to the calling thread, other systems to the whole process.
if (process.platform === 'linux') setPriority(0, BEHIND_THE_OTHERS)

parentPort?.on('message', (copy: FileCopy) => {
  const bytes = encodeCopy(copy)
  parentPort?.postMessage(bytes, bytes === undefined ? [] : [bytes.buffer])
})

/** Undefined if encoding fails: the caller then encodes the copy itself, and gets the error. */
function encodeCopy(copy: FileCopy): Uint8Array<ArrayBuffer> | undefined {
  try {
    const steps = encodeFile(copy)
    for (;;) {
      const step = steps.next()
      if (step.done) return step.value
    }
  } catch {
    return undefined
  }
}
