import { ServoError } from '../lib/error.ts'
import { canonicalJson } from '../lib/json.ts'
import type { Column, ColumnKind } from '../model/column.ts'
import type { AnyRow, Table } from '../model/table.ts'
import { keyOf, keyText } from './row-merge.ts'

const EXPECTED: Record<ColumnKind, string> = {
  string: 'text without lone surrogates',
  int: 'an integer of 32 bits',
  long: 'a safe integer',
  double: 'a finite number',
  boolean: 'true or false',
  timestamp: 'whole milliseconds since 1970',
  strings: 'an array of text without lone surrogates',
  map: 'an object of text by text, without lone surrogates and the key "__proto__"',
  json: 'a JSON value',
}

const SURROGATE = /[\uD800-\uDFFF]/

/** The values of one column for one row group, as they go to disk. Checked one by one, so that the error can name the row. */
export class ColumnBuffer {
  readonly name: string
  values: unknown[] = []
  /**
   * Some text here has characters beyond U+FFFF. The writer takes the smallest and largest text by UTF-16 code unit and
   * readers take them for UTF-8 order, so for such a column they are wrong and must not be written.
   */
  astral = false
  readonly #table: Table
  readonly #column: Column
  readonly #encode: (value: unknown) => unknown

  constructor(table: Table, name: string, column: Column) {
    this.name = name
    this.#table = table
    this.#column = column
    this.#encode = this.#encoder(column.kind)
  }

  push(row: AnyRow): void {
    const value: unknown = row[this.name]
    if (value === null || value === undefined) {
      if (!this.#column.nullable) throw this.#badRow(row, 'null')
      this.values.push(null)
      return
    }
    const encoded = this.#encode(value)
    if (encoded === undefined) throw this.#badRow(row, describe(value))
    this.values.push(encoded)
  }

  /** A column that is the same for all rows: tenant and workspace. */
  fill(value: string, count: number): void {
    this.astral = false
    if (this.#text(value) === undefined) throw this.#badRow({}, describe(value))
    this.values = new Array(count).fill(value)
  }

  /** What a value is on disk, or undefined when the column cannot hold it. */
  #encoder(kind: ColumnKind): (value: unknown) => unknown {
    switch (kind) {
      case 'string':
        return (value) => this.#text(value)
      case 'int':
        return (value) => (typeof value === 'number' && (value | 0) === value ? value : undefined)
      case 'long':
      case 'timestamp':
        return (value) => (Number.isSafeInteger(value) ? BigInt(value as number) : undefined)
      case 'double':
        // The writer's dictionary takes -0 for 0 or 0 for -0, whichever came first; JSON has only one of them anyway.
        return (value) => (Number.isFinite(value) ? (value as number) + 0 : undefined)
      case 'boolean':
        return (value) => (typeof value === 'boolean' ? value : undefined)
      case 'strings':
        return (value) => this.#strings(value)
      case 'map':
        return (value) => this.#map(value)
      case 'json':
        return (value) => this.#json(value)
    }
  }

  #text(value: unknown): string | undefined {
    if (typeof value !== 'string') return undefined
    if (!SURROGATE.test(value)) return value
    this.astral = true
    return value.isWellFormed() ? value : undefined
  }

  #strings(value: unknown): string[] | undefined {
    if (!Array.isArray(value)) return undefined
    const items: string[] = []
    for (const item of value) {
      const text = this.#text(item)
      if (text === undefined) return undefined
      items.push(text)
    }
    return items
  }

  #map(value: unknown): { key: string; value: string }[] | undefined {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    const entries: { key: string; value: string }[] = []
    // Sorted, so that equal maps give equal bytes in whatever order they were filled.
    for (const name of Object.keys(value).sort()) {
      const key = this.#text(name)
      const text = this.#text((value as Record<string, unknown>)[name])
      if (key === undefined || text === undefined || key === '__proto__') return undefined
      entries.push({ key, value: text })
    }
    return entries
  }

  #json(value: unknown): string | undefined {
    try {
      return this.#text(canonicalJson(value))
    } catch {
      return undefined
    }
  }

  #badRow(row: AnyRow, got: string): ServoError {
    const key = keyOf(this.#table, row)
    const expected = EXPECTED[this.#column.kind] + (this.#column.nullable ? ' or null' : '')
    return new ServoError(
      'bug',
      'bad_row',
      `${this.#table.name}.${this.name} of row ${keyText(key)} must be ${expected}, not ${got}`,
      {
        hint: 'This is a bug in the fold that wrote the row. Please report it with the message above.',
        facts: { table: this.#table.name, column: this.name, key },
      },
    )
  }
}

function describe(value: unknown): string {
  if (typeof value === 'string') return `the text ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`
  if (typeof value === 'object') return Array.isArray(value) ? 'an array' : 'an object'
  return `the ${typeof value} ${String(value)}`
}
