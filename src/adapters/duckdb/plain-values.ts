import {
  DuckDBArrayValue,
  DuckDBBlobValue,
  DuckDBDecimalValue,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  type DuckDBType,
  DuckDBUnionValue,
  type DuckDBValue,
  DuckDBVariantValue,
} from '@duckdb/node-api'
import { jsonOrText } from '../../lib/json.ts'

/** A value of JSON. */
export type Plain = null | boolean | number | string | Plain[] | { [key: string]: Plain }

/**
 * A value of DuckDB as plain data. Nothing is lost: whole numbers that JavaScript cannot hold and decimals that are not
 * exact become text, timestamps become ISO 8601 text, structs and maps with text keys become objects, and JSON is parsed. Assets
 * get JavaScript's own values instead (src/sdk/attempt/duckdb-values.ts).
 */
export function toPlain(value: DuckDBValue, type?: DuckDBType): Plain {
  if (typeof value === 'string') return type?.alias === 'JSON' ? (jsonOrText(value) as Plain) : value
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (typeof value === 'bigint') return exact(String(value))
  if (value instanceof DuckDBTimestampTZValue) return moment(value, 'Z')
  if (value instanceof DuckDBTimestampValue) return moment(value, '')
  if (value instanceof DuckDBDecimalValue) return exact(value.toString())
  if (value instanceof DuckDBBlobValue) return Buffer.from(value.bytes).toString('base64')
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue)
    return value.items.map((item) => toPlain(item, itemType(type)))
  if (value instanceof DuckDBMapValue) return mapOf(value, type)
  if (value instanceof DuckDBStructValue)
    return objectOf(Object.entries(value.entries).map(([name, item]) => [name, toPlain(item)]))
  if (value instanceof DuckDBUnionValue || value instanceof DuckDBVariantValue) return toPlain(value.value)
  return value.toString()
}

/** A number if that is the same number, else its text. */
function exact(digits: string): number | string {
  const number = Number(digits)
  if (Number.isSafeInteger(number) && /^-?\d+$/.test(digits)) return number
  return digits.includes('.') && digits.replace(/[-.]/g, '').length <= 15 ? number : digits
}

function moment(value: DuckDBTimestampTZValue | DuckDBTimestampValue, zone: string): string {
  const micros = ((value.micros % 1000n) + 1000n) % 1000n
  const date = new Date(Number((value.micros - micros) / 1000n))
  // Infinity, and years that JavaScript does not know.
  if (!value.isFinite || Number.isNaN(date.getTime())) return value.toString()
  return `${date.toISOString().slice(0, -1)}${micros === 0n ? '' : String(micros).padStart(3, '0')}${zone}`
}

function itemType(type: DuckDBType | undefined): DuckDBType | undefined {
  return type !== undefined && 'valueType' in type ? (type.valueType as DuckDBType) : undefined
}

function mapOf(map: DuckDBMapValue, type: DuckDBType | undefined): Plain {
  const entries = map.entries.map(({ key, value }) => ({ key: toPlain(key), value: toPlain(value, itemType(type)) }))
  if (entries.some(({ key }) => typeof key !== 'string')) return entries
  return objectOf(entries.map(({ key, value }) => [key as string, value]))
}

/** Unlike assignment, this makes a member also of the key `__proto__`. */
const objectOf = (entries: readonly (readonly [string, Plain])[]): { [key: string]: Plain } => Object.fromEntries(entries)
