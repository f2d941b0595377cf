import { invalid } from '../../sdk/invalid.ts'

export interface CsvRecord {
  /** The line of the file in which it begins, from 1. */
  readonly line: number
  /** A field without quotes that is empty is undefined: that is how CSV writes a missing value. */
  readonly fields: readonly (string | undefined)[]
}

/** More than any row has. A quote that is never closed would otherwise take the rest of the file into memory. */
const MAX_RECORD = 64 * 2 ** 20
/** More columns than any table of ours can have; each takes memory of its own. */
const MAX_FIELDS = 100_000

/**
 * Cuts CSV into records by RFC 4180: commas, quotes around fields that have commas, quotes or line ends in them, quotes within doubled.
 * Lines end in LF or CRLF. Blank lines are left out.
 */
export async function* csvRecords(chunks: AsyncIterable<string>, name: string): AsyncGenerator<CsvRecord> {
  const records = new CsvCutter(name)
  for await (const chunk of chunks) yield* records.push(chunk)
  yield* records.end()
}

/**
 * Where in a field the text stands: at its beginning, in plain text, within quotes, or behind a quote, which either ends the field or is the first
 * of two.
 */
type Place = 'begin' | 'plain' | 'quoted' | 'behind quote'

class CsvCutter {
  readonly #name: string
  #place: Place = 'begin'
  #field = ''
  #fields: (string | undefined)[] = []
  #line = 1
  #begunIn = 1
  #size = 0

  constructor(name: string) {
    this.#name = name
  }

  *push(chunk: string): Generator<CsvRecord> {
    let at = 0
    while (at < chunk.length) {
      if (this.#place === 'quoted') at = this.#quoted(chunk, at)
      else {
        const character = chunk.charAt(at)
        if (character === ',') this.#endField()
        else if (character === '\n') yield* this.#endRecord()
        else if (this.#place === 'behind quote') this.#behindQuote(character)
        else if (this.#place === 'begin' && character === '"') this.#place = 'quoted'
        else at = this.#plain(chunk, at) - 1
        at++
      }
    }
  }

  *end(): Generator<CsvRecord> {
    if (this.#place === 'quoted') throw this.#malformed(`a quote opens in the row of line ${this.#begunIn} and is never closed`)
    if (this.#fields.length > 0 || this.#place !== 'begin') yield* this.#endRecord()
  }

  /** Takes text up to the next quote. */
  #quoted(chunk: string, from: number): number {
    const quote = chunk.indexOf('"', from)
    const to = quote === -1 ? chunk.length : quote
    this.#take(chunk.slice(from, to))
    if (quote === -1) return to
    this.#place = 'behind quote'
    return quote + 1
  }

  #behindQuote(character: string): void {
    if (character === '"') {
      this.#field += '"'
      this.#grow(2)
      this.#place = 'quoted'
    } else if (character !== '\r') {
      throw this.#malformed(`line ${this.#line} has ${JSON.stringify(character)} behind the closing quote of a field`)
    }
  }

  /** Takes text up to the next comma or line end. */
  #plain(chunk: string, from: number): number {
    let to = from + 1
    while (to < chunk.length && chunk.charCodeAt(to) !== COMMA && chunk.charCodeAt(to) !== NEWLINE) to++
    this.#take(chunk.slice(from, to))
    this.#place = 'plain'
    return to
  }

  #take(text: string): void {
    this.#field += text
    if (this.#place === 'quoted') for (const character of text) if (character === '\n') this.#line++
    this.#grow(text.length)
  }

  #grow(by: number): void {
    this.#size += by
    if (this.#size > MAX_RECORD)
      throw this.#malformed(
        `the row of line ${this.#begunIn} has more than ${MAX_RECORD} characters`,
        ' Perhaps a quote is missing.',
      )
  }

  #endField(): void {
    const isBare = this.#place === 'begin' || this.#place === 'plain'
    this.#fields.push(isBare && this.#field === '' ? undefined : this.#field)
    if (this.#fields.length > MAX_FIELDS)
      throw this.#malformed(`the row of line ${this.#begunIn} has more than ${MAX_FIELDS} fields`)
    this.#grow(1)
    this.#field = ''
    this.#place = 'begin'
  }

  *#endRecord(): Generator<CsvRecord> {
    if (this.#place === 'plain' && this.#field.endsWith('\r')) this.#field = this.#field.slice(0, -1)
    this.#endField()
    const isBlank = this.#fields.length === 1 && this.#fields[0] === undefined
    if (!isBlank) yield { line: this.#begunIn, fields: this.#fields }
    this.#fields = []
    this.#size = 0
    this.#begunIn = ++this.#line
  }

  #malformed(what: string, more = ''): Error {
    return invalid('output_unreadable', `${this.#name} is not CSV: ${what}`, `Quote fields by RFC 4180.${more}`)
  }
}

const COMMA = 0x2c
const NEWLINE = 0x0a
