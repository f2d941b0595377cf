import { writeSync } from 'node:fs'
import type { FromWorker } from '../../contract/pipe.ts'
import { hasErrorCode } from '../../lib/error.ts'

/** A place to wait at: nothing ever wakes it. */
const never = new Int32Array(new SharedArrayBuffer(4))

/**
 * Writes messages to the parent, each at once and whole. When the parent is slow this waits for it, as printing to a pipe
 * does: memory stays small, order is kept, and the output of code that never yields to the event loop is still sent.
 */
export function pipeWriter(fd: number): (message: FromWorker) => void {
  return (message) => {
    let rest: Uint8Array = Buffer.from(`${JSON.stringify(message)}\n`)
    while (rest.byteLength > 0) {
      try {
        rest = rest.subarray(writeSync(fd, rest))
      } catch (error) {
        // The other direction of the socket is read by the event loop, so it does not block by itself.
        if (!hasErrorCode(error, 'EAGAIN')) throw error
        Atomics.wait(never, 0, 0, 1)
      }
    }
  }
}
