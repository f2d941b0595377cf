import { LONGEST_SECRET, redactedEnd } from '../../lib/redactor.ts'

/** Enough for the last words of code that failed, small enough for an event. */
const MAX_CHARACTERS = 2_000
const KEPT_CHARACTERS = MAX_CHARACTERS + LONGEST_SECRET

/** Keeps the end of what code prints, however much that is. */
export class LastLines {
  readonly #decoder = new TextDecoder()
  readonly #redact: (text: string) => string
  #text = ''

  constructor(redact: (text: string) => string) {
    this.#redact = redact
  }

  print(chunk: string | Uint8Array): void {
    // Of a large chunk only the end is decoded: a character has at most four bytes.
    const text =
      typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk.subarray(-4 * KEPT_CHARACTERS), { stream: true })
    this.#text = (this.#text + text.slice(-KEPT_CHARACTERS)).slice(-KEPT_CHARACTERS)
  }

  /** Whole lines, unless there is only one. */
  toString(): string {
    const text = redactedEnd(this.#text, MAX_CHARACTERS, this.#redact)
    const isCut = text.length === MAX_CHARACTERS
    const from = isCut ? text.indexOf('\n') + 1 : 0
    return text.slice(from).trimEnd().toWellFormed()
  }
}
