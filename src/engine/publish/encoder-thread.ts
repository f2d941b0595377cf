import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { mergeByRule, storeBehind } from '../sorted/merge-by-rule.ts'
import type { Made, SentWork } from './encoder.ts'
import { encodeFile } from './file-copy.ts'
import { copyOfAll } from './merge-copies.ts'

/*
 * Encodes one file after the other. See encoder.ts for why.
 */

/** Tables can wait: running tasks and writing the ledger come first. */
const BEHIND_THE_OTHERS = 10

// Linux applies this to the calling thread, other systems to the whole process.
if (process.platform === 'linux') setPriority(0, BEHIND_THE_OTHERS)

/** Answers come in the order of what was asked, although reading files that are to be merged takes several turns. */
let last: Promise<void> = Promise.resolve()

parentPort?.on('message', (sent: SentWork) => {
  last = last.then(async () => {
    const made = await make(sent)
    sent.ranges?.close()
    parentPort?.postMessage(made, made === undefined ? [] : [made.bytes.buffer])
  })
})

/** Undefined if encoding fails: the caller then does the work itself, and gets the error. */
async function make({ work, ranges }: SentWork): Promise<Made | undefined> {
  try {
    if ('sorted' in work) return ranges === undefined ? undefined : await mergeByRule(work, storeBehind(ranges))
    const steps = encodeFile('files' in work ? await copyOfAll(work) : work)
    for (;;) {
      const step = steps.next()
      if (step.done) return { bytes: step.value, rows: work.rows }
    }
  } catch {
    return undefined
  }
}
