import { StringDecoder } from 'node:string_decoder'
import type { LogEntry } from '../contract/pipe.ts'
import { LONGEST_SECRET } from '../lib/redactor.ts'

/** The output that is kept of one attempt. More is of no use to a reader, and would have to be sent, stored and shown. */
const MAX_PRINTED_BYTES = 16 * 2 ** 20

/** The longest entry: enough for any stack trace, small enough to send to a browser. */
const MAX_ENTRY_CHARACTERS = 64 * 1024

type Printed = Omit<LogEntry, 'at'>
type Redact = (text: string) => string

/** Counts what an attempt prints, so that there is one limit for all its streams. */
class PrintLimit {
  #left = MAX_PRINTED_BYTES
  #leftOut = 0

  /** How many of these bytes may still be kept. */
  take(bytes: number): number {
    const taken = Math.min(bytes, this.#left)
    this.#left -= taken
    this.#leftOut += bytes - taken
    return taken
  }

  /** A line for the reader when something is missing. */
  notice(): Printed | undefined {
    if (this.#leftOut === 0) return undefined
    const size = this.#leftOut < 1e5 ? `${this.#leftOut} bytes` : `${(this.#leftOut / 1e6).toFixed(1)} MB`
    return {
      stream: 'log',
      level: 'warn',
      text: `${size} of output were dropped: an attempt may print ${MAX_PRINTED_BYTES / 2 ** 20} MB. Write more than that to a file.`,
    }
  }
}

/**
 * Turns what is written to a stream into log entries. A write that ends a line is one entry, so that a stack trace stays in one
 * piece; the beginning of a line waits for its end.
 */
class PrintedText {
  readonly #stream: 'stdout' | 'stderr'
  readonly #limit: PrintLimit
  readonly #add: (entry: Printed) => void
  readonly #redact: Redact
  #decoder: StringDecoder | undefined
  #begun = ''

  constructor(stream: 'stdout' | 'stderr', limit: PrintLimit, add: (entry: Printed) => void, redact: Redact) {
    this.#stream = stream
    this.#limit = limit
    this.#add = add
    this.#redact = redact
  }

  write(chunk: string | Uint8Array, level?: LogEntry['level']): void {
    const bytes = typeof chunk === 'string' ? Buffer.byteLength(chunk) : chunk.byteLength
    const kept = this.#limit.take(bytes)
    if (kept === 0) return
    if (kept < bytes) {
      // Half a secret is not recognised, so nothing is cut before secrets are taken out.
      const all = this.#redact(this.#begun + this.#decoded(chunk))
      this.#entries(all.slice(0, Math.max(0, this.#begun.length + kept - LONGEST_SECRET)), level)
      this.#begun = ''
      return
    }
    const text = this.#decoded(chunk)
    const end = text.lastIndexOf('\n')
    if (end === -1 && this.#begun.length + text.length < MAX_ENTRY_CHARACTERS) {
      this.#begun += text
      return
    }
    const whole = this.#redact(this.#begun + (end === -1 ? text : text.slice(0, end)))
    // A line without an end: the secret that may have begun in it is not torn.
    const cut = end === -1 ? Math.max(0, whole.length - LONGEST_SECRET) : whole.length
    this.#begun = end === -1 ? whole.slice(cut) : text.slice(end + 1)
    this.#entries(whole.slice(0, cut), level)
  }

  /** Adds what is left of a line that was never ended. */
  end(): void {
    const rest = this.#begun + (this.#decoder?.end() ?? '')
    this.#begun = ''
    if (rest !== '') this.#entries(this.#redact(rest), undefined)
  }

  #decoded(chunk: string | Uint8Array): string {
    if (typeof chunk === 'string') return chunk
    this.#decoder ??= new StringDecoder('utf8')
    return this.#decoder.write(chunk)
  }

  #entries(text: string, level: LogEntry['level']): void {
    let start = 0
    do {
      let end = Math.min(start + MAX_ENTRY_CHARACTERS, text.length)
      // Half of a surrogate pair has no UTF-8 form.
      if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end--
      const piece = text.slice(start, end)
      this.#add(level === undefined ? { stream: this.#stream, text: piece } : { stream: this.#stream, level, text: piece })
      start = end
    } while (start < text.length)
  }
}

/** Everything that one attempt prints, as log entries. */
export class PrintedOutput {
  readonly #add: (entry: Printed) => void
  readonly #limit = new PrintLimit()
  readonly #stdout: PrintedText
  readonly #stderr: PrintedText

  constructor(add: (entry: Printed) => void, redact: Redact) {
    this.#add = add
    this.#stdout = new PrintedText('stdout', this.#limit, add, redact)
    this.#stderr = new PrintedText('stderr', this.#limit, add, redact)
  }

  write(stream: 'stdout' | 'stderr', chunk: string | Uint8Array, level?: LogEntry['level']): void {
    const text = stream === 'stdout' ? this.#stdout : this.#stderr
    text.write(chunk, level)
  }

  /** Counts an entry that came ready-made. False when there is no more room for it. */
  admits(entry: Printed): boolean {
    const size = entry.text.length + (entry.fields === undefined ? 0 : JSON.stringify(entry.fields).length)
    return this.#limit.take(size) === size
  }

  end(): void {
    this.#stdout.end()
    this.#stderr.end()
    const notice = this.#limit.notice()
    if (notice !== undefined) this.#add(notice)
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
