import {
  DuckDBArrayValue,
  DuckDBBlobValue,
  type DuckDBConnection,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  type DuckDBType,
  type DuckDBValue,
} from '@duckdb/node-api'
import { jsonOrText } from '../../lib/json.ts'
import { DAY_MS } from '../../lib/time.ts'
import type { ColumnType, DataColumn } from '../columns.ts'
import type { Parameter } from '../declare/sql.ts'
import type { DataRow } from '../declare/values.ts'
import { invalid, show } from '../invalid.ts'

/** How DuckDB holds a column. */
export const columnTypes: Readonly<Record<ColumnType, string>> = {
  text: 'VARCHAR',
  double: 'DOUBLE',
  integer: 'BIGINT',
  bigint: 'BIGINT',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMPTZ',
  json: 'JSON',
}

export function toDuckDb(value: Parameter): DuckDBValue {
  return value instanceof Date ? timestamp(value) : value
}

const timestamp = (date: Date): DuckDBTimestampTZValue => new DuckDBTimestampTZValue(BigInt(date.getTime()) * 1_000n)

/** Appends rows to a table that has these columns. */
export async function appendRows(
  connection: DuckDBConnection,
  name: string,
  rows: Iterable<DataRow> | AsyncIterable<DataRow>,
  columns: readonly DataColumn[],
): Promise<void> {
  const appender = await connection.createAppender(name)
  for await (const row of rows) {
    for (const column of columns) {
      const value = row[column.name]
      if (value === null || value === undefined) appender.appendNull()
      else append(appender, column, value)
    }
    appender.endRow()
  }
  appender.closeSync()
}

type Appender = Awaited<ReturnType<DuckDBConnection['createAppender']>>

function append(appender: Appender, { name, type }: DataColumn, value: unknown): void {
  if (type === 'json') appender.appendVarchar(JSON.stringify(value))
  else if (type === 'text' && typeof value === 'string') appender.appendVarchar(value)
  else if (type === 'double' && typeof value === 'number') appender.appendDouble(value)
  else if (type === 'integer' && Number.isSafeInteger(value)) appender.appendBigInt(BigInt(value as number))
  else if (type === 'bigint' && typeof value === 'bigint') appender.appendBigInt(value)
  else if (type === 'boolean' && typeof value === 'boolean') appender.appendBoolean(value)
  else if (type === 'timestamp' && value instanceof Date) appender.appendTimestampTZ(timestamp(value))
  else
    throw invalid(
      'bad_row_value',
      `${show(value)} in column ${name} is not a valid ${type}`,
      'Fix the row, or change the schema if the row is right.',
    )
}

/**
 * A value as code has it: dates, big integers and bytes are what JavaScript has for them, unlike in src/adapters/duckdb, where
 * values become JSON that loses nothing. `column`, if known, is more precise than the type of the database.
 */
export function fromDuckDb(value: DuckDBValue, type?: DuckDBType, column?: DataColumn): unknown {
  if (value === null) return column?.empty === 'undefined' ? undefined : null
  if (typeof value === 'string') return type?.alias === 'JSON' || column?.type === 'json' ? jsonOrText(value) : value
  if (typeof value === 'bigint') return column?.type === 'bigint' || !isSafe(value) ? value : Number(value)
  if (typeof value === 'number' && column?.type === 'bigint' && Number.isInteger(value)) return BigInt(value)
  if (value instanceof DuckDBTimestampTZValue || value instanceof DuckDBTimestampValue)
    return new Date(Number(value.micros / 1_000n))
  // A date is not a timestamp, and its text is the key of a daily partition.
  if (value instanceof DuckDBDateValue) return column?.type === 'timestamp' ? new Date(value.days * DAY_MS) : value.toString()
  if (value instanceof DuckDBDecimalValue) return value.toDouble()
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) return value.items.map((item) => fromDuckDb(item))
  if (value instanceof DuckDBStructValue)
    return Object.fromEntries(Object.entries(value.entries).map(([name, item]) => [name, fromDuckDb(item)]))
  if (value instanceof DuckDBMapValue)
    return Object.fromEntries(value.entries.map((entry) => [String(fromDuckDb(entry.key)), fromDuckDb(entry.value)]))
  if (value instanceof DuckDBBlobValue) return new Uint8Array(value.bytes)
  return typeof value === 'object' ? value.toString() : value
}

const isSafe = (value: bigint): boolean => value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER
