import { isObject } from '../../lib/is-object.ts'
import type { RowField } from '../../sdk/columns.ts'

/** A value that the type of its field does not allow. */
export const MISFIT = Symbol('misfit')

/** What a field must be, for an error. */
export const expected: Readonly<Record<RowField['type'], string>> = {
  text: 'text',
  double: 'a number',
  integer: 'a whole number',
  bigint: 'a whole number',
  boolean: 'true or false',
  timestamp: 'a time such as 2025-03-01T09:00:00Z',
  json: 'JSON',
  any: 'a value',
}

const WHOLE = /^[+-]?\d+$/
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i

/** A field of text, as CSV has it, as a value of its type. Missing values are the business of the caller. */
export function fromText(text: string, type: RowField['type']): unknown {
  switch (type) {
    case 'text':
    case 'any':
      return text
    case 'double':
    case 'integer':
      return DECIMAL.test(text.trim()) ? Number(text) : MISFIT
    case 'bigint':
      return WHOLE.test(text.trim()) ? BigInt(text) : MISFIT
    case 'boolean':
      return booleans.get(text.trim().toLowerCase()) ?? MISFIT
    case 'timestamp':
      return timeOf(text)
    case 'json':
      try {
        return JSON.parse(text)
      } catch {
        return MISFIT
      }
  }
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
])

const MOMENT = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?$/i

/** ISO 8601, with a space instead of the T as databases write it. A time without an offset is UTC, wherever the worker is. */
export function timeOf(text: string): Date | typeof MISFIT {
  const [, day, clock = '00:00', fraction = '', offset = 'Z'] = MOMENT.exec(text.trim()) ?? []
  if (day === undefined || !isDay(day)) return MISFIT
  const zone = /^z$/i.test(offset) ? 'Z' : `${offset.slice(0, 3)}:${offset.replace(':', '').slice(3) || '00'}`
  const seconds = clock.length === 5 ? `${clock}:00` : clock
  // More digits than a Date has are cut off.
  const date = new Date(`${day}T${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}${zone}`)
  return Number.isNaN(date.getTime()) ? MISFIT : date
}

/** JavaScript takes the 30th of February for the 2nd of March. */
function isDay(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
}

/** Numbers that `parsePythonJson` keeps as text, because JSON or JavaScript has none for them. */
const KEPT_NUMBER = /^(?:NaN|-?Infinity|-?\d{16,})$/

/** A value of JSON as a value of the type of its field. What does not fit otherwise is for the schema to refuse. */
export function fromJson(value: unknown, type: RowField['type']): unknown {
  if (type === 'timestamp' && typeof value === 'string') return timeOf(value)
  if (type === 'bigint') {
    if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
    if (typeof value === 'string' && WHOLE.test(value)) return BigInt(value)
  }
  if ((type === 'double' || type === 'integer') && typeof value === 'string' && KEPT_NUMBER.test(value)) return Number(value)
  return value
}

/** A day of a calendar, which Parquet keeps apart from moments. */
export class CalendarDay extends Date {}

/** A value of Parquet as a value of the type of its field. */
export function fromParquet(value: unknown, type: RowField['type']): unknown {
  if (type === 'bigint') return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value
  // The text of a day is the key of a daily partition.
  if (type === 'text' && value instanceof Date)
    return value instanceof CalendarDay ? value.toISOString().slice(0, 10) : value.toISOString()
  return plain(value)
}

/** Whole numbers have 64 bits in most files, and are numbers in code as long as they are exact. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value
  if (Array.isArray(value)) return value.map(plain)
  if (!isObject(value) || value instanceof Date || value instanceof Uint8Array) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]))
}
