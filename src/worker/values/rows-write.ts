import { constants, zstdCompressSync } from 'node:zlib'
import type { SchemaElement } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { canonicalJson } from '../../lib/json.ts'
import type { DataRow as Row } from '../../sdk/attempt/values.ts'
import { type DataColumn as Column, type ColumnType, inferColumns } from '../../sdk/columns.ts'
import { invalid } from '../../sdk/invalid.ts'

/** What is held of the rows at a time. Fewer would compress worse, more would need more memory. */
const GROUP_ROWS = 20_000
const GROUP_CHARACTERS = 16 * 2 ** 20

/** Where a file of ours says how its columns look in code. */
export const COLUMNS_KEY = 'servo.columns'

/** Parquet has no file without columns. This one is left out again when the file is read. */
export const NO_COLUMNS: Column = { name: 'servo_no_columns', type: 'boolean', empty: 'undefined' }

// zstd's own default. A fixed level, because equal rows should give equal bytes.
const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: 3 } }
const compressors = { ZSTD: (page: Uint8Array): Uint8Array => zstdCompressSync(page, ZSTD) }

export interface EncodedRows {
  readonly bytes: Uint8Array
  readonly rows: number
}

/** Rows as a Parquet file. They are taken group by group, so that only what they were compressed to stays in memory. */
export async function encodeRows(rows: AsyncIterable<Row>, columns: readonly Column[] | undefined): Promise<EncodedRows> {
  let file = columns && new RowFile(columns)
  const first: Row[] = []
  for await (const row of rows) {
    if (file !== undefined) file.add(row)
    else {
      first.push(row)
      if (first.length === GROUP_ROWS) file = inferredFile(first)
    }
  }
  return (file ?? inferredFile(first)).finish()
}

/** When the schema does not tell the columns, the first rows do. A later row may lack any of their values, but have no others. */
function inferredFile(rows: readonly Row[]): RowFile {
  const columns = inferColumns(rows).map((column) =>
    column.empty === 'never' ? ({ ...column, empty: 'null' } as const) : column,
  )
  const file = new RowFile(columns, new Set(columns.map(({ name }) => name)))
  for (const row of rows) file.add(row)
  return file
}

class RowFile {
  readonly #columns: readonly ColumnBuffer[]
  readonly #declared: readonly Column[]
  readonly #known: ReadonlySet<string> | undefined
  readonly #output = new ByteWriter()
  readonly #parquet: ParquetWriter
  #rows = 0
  #held = 0
  #characters = 0

  constructor(columns: readonly Column[], known?: ReadonlySet<string>) {
    this.#known = known
    this.#declared = columns.length > 0 ? columns : [NO_COLUMNS]
    this.#columns = this.#declared.map((column) => new ColumnBuffer(column))
    this.#parquet = new ParquetWriter({
      writer: this.#output,
      schema: schemaOf(this.#declared, 'plain'),
      codec: 'ZSTD',
      compressors,
    })
  }

  add(row: Row): void {
    this.#rows++
    const surprise = this.#known && Object.keys(row).find((name) => !this.#known?.has(name))
    if (surprise !== undefined)
      throw invalid(
        'row_does_not_fit',
        `row ${this.#rows} has a column ${surprise}, which none of the first ${GROUP_ROWS} rows has`,
        'Give the table a zod schema, which names its columns.',
      )
    for (const column of this.#columns) this.#characters += column.push(row, this.#rows)
    if (++this.#held === GROUP_ROWS || this.#characters >= GROUP_CHARACTERS) this.#flush()
  }

  finish(): EncodedRows {
    if (this.#held > 0) this.#flush()
    this.#parquet.kvMetadata = [{ key: COLUMNS_KEY, value: JSON.stringify(this.#declared) }]
    // The writer would serialize JSON by its own lights, so it was given text; the footer must say JSON all the same.
    this.#parquet.schema = schemaOf(this.#declared, 'annotated')
    this.#parquet.finish()
    return { bytes: this.#output.getBytes(), rows: this.#rows }
  }

  #flush(): void {
    this.#parquet.write({
      columnData: this.#columns.map(({ column, values }) => ({ name: column.name, data: values, offsetIndex: false })),
      rowGroupSize: this.#held,
    })
    const misleading = new Set(this.#columns.filter(({ unordered }) => unordered).map(({ column }) => column.name))
    for (const { meta_data } of this.#parquet.row_groups.at(-1)?.columns ?? [])
      if (meta_data?.statistics && misleading.has(meta_data.path_in_schema[0] ?? '')) delete meta_data.statistics
    for (const column of this.#columns) column.reset()
    this.#held = 0
    this.#characters = 0
  }
}

/** The values of one column for one group of rows, as they go into the file. */
class ColumnBuffer {
  readonly column: Column
  values: unknown[] = []
  /** Smallest and largest would be wrong: the writer orders text by UTF-16 and readers by UTF-8, and NaN has no order. */
  unordered = false

  constructor(column: Column) {
    this.column = column
  }

  /** Answers how much text this was. */
  push(row: Row, number: number): number {
    const { name, type, empty } = this.column
    const value = row[name]
    if (value === null || value === undefined) {
      // Where anything may be, null is a value.
      if (type === 'json' && empty === 'never') this.values.push('null')
      else if (empty === 'never') throw badValue(number, this.column, value)
      else this.values.push(null)
      return 0
    }
    const stored = this.#encoded(type, value)
    if (stored === undefined) throw badValue(number, this.column, value)
    this.values.push(stored)
    return typeof stored === 'string' ? stored.length : 8
  }

  reset(): void {
    this.values = []
    this.unordered = false
  }

  #encoded(type: ColumnType, value: unknown): unknown {
    switch (type) {
      case 'text':
        return typeof value === 'string' ? this.#text(value) : undefined
      case 'double':
        if (Number.isNaN(value)) this.unordered = true
        // The writer's dictionary takes -0 for 0 or 0 for -0, whichever came first.
        return typeof value === 'number' ? value + 0 : undefined
      case 'integer':
        return Number.isSafeInteger(value) ? BigInt(value as number) : undefined
      case 'bigint':
        return typeof value === 'bigint' && BigInt.asIntN(64, value) === value ? value : undefined
      case 'boolean':
        return typeof value === 'boolean' ? value : undefined
      case 'timestamp':
        return value instanceof Date && !Number.isNaN(value.getTime()) ? BigInt(value.getTime()) : undefined
      case 'json':
        return this.#text(jsonOf(value))
    }
  }

  #text(value: string | undefined): string | undefined {
    if (value === undefined || !/[\uD800-\uDFFF]/.test(value)) return value
    this.unordered = true
    return value.isWellFormed() ? value : undefined
  }
}

function jsonOf(value: unknown): string | undefined {
  try {
    return canonicalJson(value)
  } catch {
    return undefined
  }
}

const kept: Readonly<Record<ColumnType, string>> = {
  text: 'text without halves of surrogate pairs',
  double: 'a number',
  integer: 'a whole number up to 2^53',
  bigint: 'a bigint of 64 bits',
  boolean: 'true or false',
  timestamp: 'a valid Date',
  json: 'something that JSON can hold',
}

function badValue(row: number, { name, type, empty }: Column, value: unknown) {
  return invalid(
    'row_does_not_fit',
    `row ${row} has ${described(value)} in column ${name}, which must be ${kept[type]}${empty === 'never' ? '' : `, ${empty}`}`,
    'Change the row, or let the schema of the table say what the column may hold.',
  )
}

function described(value: unknown): string {
  if (typeof value === 'string') return `the text ${JSON.stringify(value.slice(0, 40))}`
  if (typeof value !== 'object' || value === null) return String(value)
  return value instanceof Date ? 'a Date' : `an ${Array.isArray(value) ? 'array' : 'object'}`
}

const TEXT = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } } as const
const JSON_TEXT = { type: 'BYTE_ARRAY', converted_type: 'JSON', logical_type: { type: 'JSON' } } as const
// The writer's own shorthand writes local time; spelled out, DuckDB reads a TIMESTAMP WITH TIME ZONE.
const MOMENT = { type: 'INT64', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' } } as const

const elements: Readonly<Record<ColumnType, Omit<SchemaElement, 'name'>>> = {
  text: TEXT,
  double: { type: 'DOUBLE' },
  integer: { type: 'INT64' },
  bigint: { type: 'INT64' },
  boolean: { type: 'BOOLEAN' },
  timestamp: MOMENT,
  json: JSON_TEXT,
}

function schemaOf(columns: readonly Column[], json: 'plain' | 'annotated'): SchemaElement[] {
  const own = columns.map(({ name, type, empty }): SchemaElement => {
    const element = type === 'json' && json === 'plain' ? ({ type: 'BYTE_ARRAY' } as const) : elements[type]
    return { name, repetition_type: empty === 'never' ? 'REQUIRED' : 'OPTIONAL', ...element }
  })
  return [{ name: 'servo', num_children: columns.length }, ...own]
}
