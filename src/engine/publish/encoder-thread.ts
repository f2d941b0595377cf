import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { encodeFile, type FileCopy } from './file-copy.ts'
import { copyOfAll, type FilesToMerge } from './merge-copies.ts'

/*
 * Encodes one file after the other. See encoder.ts for why.
 */

/** Tables can wait: running tasks and writing the ledger come first. */
const BEHIND_THE_OTHERS = 10

// Linux applies this to the calling thread, other systems to the whole process.
if (process.platform === 'linux') setPriority(0, BEHIND_THE_OTHERS)

/** Answers come in the order of what was asked, although reading files that are to be merged takes several turns. */
let last: Promise<void> = Promise.resolve()

parentPort?.on('message', (work: FileCopy | FilesToMerge) => {
  last = last.then(async () => {
    const bytes = await encode(work)
    parentPort?.postMessage(bytes, bytes === undefined ? [] : [bytes.buffer])
  })
})

/** Undefined if encoding fails: the caller then does the work itself, and gets the error. */
async function encode(work: FileCopy | FilesToMerge): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    const steps = encodeFile('files' in work ? await copyOfAll(work) : work)
    for (;;) {
      const step = steps.next()
      if (step.done) return step.value
    }
  } catch {
    return undefined
  }
}
