import { closeSync, openSync, readSync } from 'node:fs'

/** Soon enough for a person who watches, seldom enough to cost nothing. */
const LOOK_MS = 100

const CHUNK_BYTES = 64 * 1024

/** Reads what is added to a file, until `end` has had a last look. Ending twice is fine. */
export function followFile(file: string, onData: (chunk: Buffer) => void): { end(): void } {
  // `a` creates it: a program that never writes leaves it empty.
  closeSync(openSync(file, 'a'))
  const fd = openSync(file, 'r')
  let ended = false
  function look(): void {
    while (!ended) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
      const bytes = readSync(fd, chunk)
      if (bytes === 0) return
      onData(chunk.subarray(0, bytes))
    }
  }
  const timer = setInterval(look, LOOK_MS)
  return {
    end() {
      if (ended) return
      clearInterval(timer)
      look()
      ended = true
      closeSync(fd)
    },
  }
}
