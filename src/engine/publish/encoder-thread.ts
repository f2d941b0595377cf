import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { encodeFile, type FileCopy } from './file-copy.ts'

/*
 * Encodes one file after the other. See encoder.ts for why.
 */

/** Tables can wait: what runs tasks, or writes down what became of them, goes first. */
const BEHIND_THE_OTHERS = 10

// Linux takes this for the thread that asks, other systems for the whole process.
if (process.platform === 'linux') setPriority(0, BEHIND_THE_OTHERS)

parentPort?.on('message', (copy: FileCopy) => {
  const bytes = encoded(copy)
  parentPort?.postMessage(bytes, bytes === undefined ? [] : [bytes.buffer])
})

/** Undefined when it cannot be done: the caller tries it itself, and sees why. */
function encoded(copy: FileCopy): Uint8Array<ArrayBuffer> | undefined {
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
