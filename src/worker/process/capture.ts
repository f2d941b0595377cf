import type { LogEntry } from '../../contract/pipe.ts'

type Level = LogEntry['level']
type Print = (stream: 'stdout' | 'stderr', chunk: string | Uint8Array, level: Level) => boolean

const levels = [
  ['debug', 'debug'],
  ['log', 'info'],
  ['info', 'info'],
  ['warn', 'warn'],
  ['error', 'error'],
  ['trace', 'debug'],
] as const

type Done = (error?: Error | null) => void

/**
 * Passes what user code prints to `process.stdout`, `process.stderr` and `console` to `print`. If that returns false, the text
 * goes where it would have gone. Console still formats and indents: in the end it writes to the streams, which would lose
 * nothing but its level.
 */
export function capturePrinting(print: Print): void {
  let level: Level
  for (const name of ['stdout', 'stderr'] as const) {
    const stream = process[name]
    const write = stream.write.bind(stream)
    stream.write = (chunk: string | Uint8Array, encoding?: BufferEncoding | Done, written?: Done): boolean => {
      const text = typeof chunk === 'string' && typeof encoding === 'string' ? decodeChunk(chunk, encoding) : chunk
      if (!print(name, text, level)) {
        return typeof encoding === 'function' ? write(chunk, encoding) : write(chunk, encoding, written)
      }
      const done = typeof encoding === 'function' ? encoding : written
      if (typeof done === 'function') process.nextTick(done)
      return true
    }
  }
  for (const [method, its] of levels) {
    const original = console[method]
    console[method] = (...words: unknown[]): void => {
      const before = level
      level = its
      try {
        original.apply(console, words)
      } finally {
        level = before
      }
    }
  }
}

function decodeChunk(chunk: string, encoding: BufferEncoding): string | Uint8Array {
  const isText = encoding === 'utf8' || encoding === 'utf-8'
  return isText ? chunk : Buffer.from(chunk, encoding)
}
