const NEWLINE = 0x0a

/**
 * Cuts the bytes of a pipe into lines. A line that arrives in many pieces is put together once, when it is complete: its cost
 * is its length, however it was cut.
 */
export function lineReader(onLine: (line: string) => void): (chunk: Buffer) => void {
  let pieces: Buffer[] = []
  return (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      if (pieces.length === 0) onLine(chunk.toString('utf8', start, end))
      else {
        pieces.push(chunk.subarray(start, end))
        const line = Buffer.concat(pieces).toString('utf8')
        pieces = []
        onLine(line)
      }
      start = end + 1
    }
    if (start < chunk.length) pieces.push(chunk.subarray(start))
  }
}
