import { ServoError } from '../../lib/error.ts'
import { canonicalJson } from '../../lib/json.ts'
import type { Column, ColumnKind } from '../../model/column.ts'
import type { AnyRow } from '../../model/table.ts'
import { kindOfText } from '../../parquet/codecs.ts'
import { keyOf, keyText } from '../fold/row-merge.ts'
import type { FileShape } from './schema.ts'

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

/** A function that copies the value of one column out of a row, so that later changes of the row do not affect it. */
export function valueCopier(table: FileShape, name: string): (row: AnyRow) => unknown {
  switch (table.stored[name]!.kind) {
    case 'strings':
      return (row) => (Array.isArray(row[name]) ? row[name].slice() : row[name])
    case 'map':
      return (row) => (isRecord(row[name]) ? { ...row[name] } : row[name])
    case 'json':
      return (row) => jsonOf(table, name, row)
    default:
      return (row) => row[name]
  }
}

function jsonOf(table: FileShape, name: string, row: AnyRow): string | null {
  const value: unknown = row[name]
  if (value === null || value === undefined) return null
  try {
    return canonicalJson(value)
  } catch {
    throw badRow(table, name, keyOf(table, row), describe(value))
  }
}

/** The values of one column for one row group, as they go to disk. */
export interface StoredColumn {
  readonly name: string
  readonly values: readonly unknown[]
  /** Some text here has characters beyond U+FFFF: see `kindOfText`. */
  readonly astral: boolean
}

/** Converts copied values to those that are stored. Checks them one by one, so that an error can name the row by its key. */
export function storedColumn(
  table: FileShape,
  name: string,
  values: readonly unknown[],
  keyAt: (row: number) => readonly unknown[],
): StoredColumn {
  const column = table.stored[name]!
  const encoder = new ValueEncoder(column.kind)
  const stored = values.map((value, row) => {
    if (value === null || value === undefined) {
      if (!column.nullable) throw badRow(table, name, keyAt(row), 'null')
      return null
    }
    const encoded = encoder.encode(value)
    if (encoded === undefined) throw badRow(table, name, keyAt(row), describe(value))
    return encoded
  })
  return { name, values: stored, astral: encoder.astral }
}

/** Converts a value to the one that is stored; undefined if the column cannot hold it. */
class ValueEncoder {
  astral = false
  readonly encode: (value: unknown) => unknown

  constructor(kind: ColumnKind) {
    this.encode = this.#encoder(kind)
  }

  #encoder(kind: ColumnKind): (value: unknown) => unknown {
    switch (kind) {
      case 'string':
      case 'json':
        return (value) => this.#text(value)
      case 'int':
        return (value) => (typeof value === 'number' && (value | 0) === value ? value : undefined)
      case 'long':
      case 'timestamp':
        return (value) => (typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : undefined)
      case 'double':
        // The writer's dictionary takes -0 for 0 or 0 for -0, whichever came first; JSON has only one of them anyway.
        return (value) => (typeof value === 'number' && Number.isFinite(value) ? value + 0 : undefined)
      case 'boolean':
        return (value) => (typeof value === 'boolean' ? value : undefined)
      case 'strings':
        return (value) => this.#strings(value)
      case 'map':
        return (value) => this.#map(value)
    }
  }

  #text(value: unknown): string | undefined {
    if (typeof value !== 'string') return undefined
    const kind = kindOfText(value)
    if (kind !== 'plain') this.astral = true
    return kind === 'broken' ? undefined : value
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
    if (!isRecord(value)) return undefined
    const entries: { key: string; value: string }[] = []
    // Sorted, so that equal maps give equal bytes in whatever order they were filled.
    for (const name of Object.keys(value).sort()) {
      const key = this.#text(name)
      const text = this.#text(value[name])
      if (key === undefined || text === undefined || key === '__proto__') return undefined
      entries.push({ key, value: text })
    }
    return entries
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function badRow(table: FileShape, name: string, key: readonly unknown[], got: string): ServoError {
  const column: Column = table.stored[name]!
  const expected = EXPECTED[column.kind] + (column.nullable ? ' or null' : '')
  return new ServoError('bug', 'bad_row', `${table.name}.${name} of row ${keyText(key)} must be ${expected}, not ${got}`, {
    hint: 'This is a bug in the fold that wrote the row. Please report it with the message above.',
    facts: { table: table.name, column: name, key },
  })
}

function describe(value: unknown): string {
  if (typeof value === 'string') return `the text ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`
  if (typeof value === 'object') return Array.isArray(value) ? 'an array' : 'an object'
  return `the ${typeof value} ${String(value)}`
}
