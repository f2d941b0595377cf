const NEWLINE = 0x0a

export interface LineLimit {
  readonly bytes: number
  /** A line is longer. What was kept of it is let go. */
  exceeded(): void
}

/**
 * Cuts the bytes of a pipe into lines. A line that arrives in many pieces is put together once, when it is complete: its cost
 * is its length, however it was cut.
 */
export function lineReader(onLine: (line: string) => void, limit?: LineLimit): (chunk: Buffer) => void {
  let pieces: Buffer[] = []
  let kept = 0
  return (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      if (pieces.length === 0) onLine(chunk.toString('utf8', start, end))
      else {
        pieces.push(chunk.subarray(start, end))
        const line = Buffer.concat(pieces).toString('utf8')
        pieces = []
        kept = 0
        onLine(line)
      }
      start = end + 1
    }
    if (start === chunk.length) return
    pieces.push(chunk.subarray(start))
    kept += chunk.length - start
    if (limit === undefined || kept <= limit.bytes) return
    pieces = []
    kept = 0
    limit.exceeded()
  }
}
