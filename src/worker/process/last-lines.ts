/** Enough for the last words of code that failed, small enough for an event. */
const MAX_CHARACTERS = 2_000

/** Keeps the end of what code prints, however much that is. */
export class LastLines {
  readonly #decoder = new TextDecoder()
  #text = ''

  print(chunk: string | Uint8Array): void {
    // Of a large chunk only the end is decoded: a character has at most four bytes.
    const text = typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk.subarray(-4 * MAX_CHARACTERS), { stream: true })
    this.#text = (this.#text + text.slice(-MAX_CHARACTERS)).slice(-MAX_CHARACTERS)
  }

  /** Whole lines, unless there is only one. */
  toString(): string {
    const isCut = this.#text.length === MAX_CHARACTERS
    const from = isCut ? this.#text.indexOf('\n') + 1 : 0
    return this.#text.slice(from).trimEnd().toWellFormed()
  }
}
