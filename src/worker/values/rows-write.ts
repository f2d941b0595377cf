import type { SchemaElement } from 'hyparquet'
import { canonicalJson } from '../../lib/json.ts'
import { kindOfText } from '../../parquet/codecs.ts'
import { JSON_TEXT, MOMENT, TEXT } from '../../parquet/elements.ts'
import { FileWriter } from '../../parquet/file-writer.ts'
import { type DataColumn as Column, type ColumnType, inferColumns } from '../../sdk/columns.ts'
import type { DataRow as Row } from '../../sdk/declare/values.ts'
import { invalid } from '../../sdk/invalid.ts'

/** How many rows are held at a time. Fewer would compress worse, more would need more memory. */
const GROUP_ROWS = 20_000
const GROUP_CHARACTERS = 16 * 2 ** 20

/** The metadata key under which our files record the types of their columns in code. */
export const COLUMNS_KEY = 'servo.columns'

/** Parquet has no file without columns. This one is left out again when the file is read. */
export const NO_COLUMNS: Column = { name: 'servo_no_columns', type: 'boolean', empty: 'undefined' }

export interface EncodedRows {
  readonly bytes: Uint8Array
  readonly rows: number
}

/** Encodes rows as a Parquet file, group by group, so that only compressed groups stay in memory. */
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

/** Without a schema the first rows give the columns. A later row may lack some of them, but has no others. */
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
  readonly #file: FileWriter
  #rows = 0
  #held = 0
  #characters = 0

  constructor(columns: readonly Column[], known?: ReadonlySet<string>) {
    this.#known = known
    this.#declared = columns.length > 0 ? columns : [NO_COLUMNS]
    this.#columns = this.#declared.map((column) => new ColumnBuffer(column))
    this.#file = new FileWriter({ schema: schemaOf(this.#declared), codec: 'ZSTD' })
  }

  add(row: Row): void {
    this.#rows++
    const surprise = this.#known && Object.keys(row).find((name) => !this.#known?.has(name))
    if (surprise !== undefined)
      throw invalid(
        'row_does_not_fit',
        `row ${this.#rows} has a column ${surprise} that none of the first ${GROUP_ROWS} rows has`,
        'Give the table a zod schema, which names its columns.',
      )
    for (const column of this.#columns) this.#characters += column.push(row, this.#rows)
    if (++this.#held === GROUP_ROWS || this.#characters >= GROUP_CHARACTERS) this.#flush()
  }

  finish(): EncodedRows {
    if (this.#held > 0) this.#flush()
    return { bytes: this.#file.finish({ [COLUMNS_KEY]: JSON.stringify(this.#declared) }), rows: this.#rows }
  }

  #flush(): void {
    this.#file.write(
      this.#columns.map(({ column, values, unordered }) => ({
        name: column.name,
        values,
        ...(unordered && { statistics: 'none' as const }),
      })),
      this.#held,
    )
    for (const column of this.#columns) column.reset()
    this.#held = 0
    this.#characters = 0
  }
}

/** The values of one column for one group of rows, as they go into the file. */
class ColumnBuffer {
  readonly column: Column
  values: unknown[] = []
  /** True if a smallest and a largest value would be wrong: text may have another order for readers, and NaN has none. */
  unordered = false

  constructor(column: Column) {
    this.column = column
  }

  /** Returns about how many characters the value takes. */
  push(row: Row, number: number): number {
    const { name, type, empty } = this.column
    const value = row[name]
    if (value === null || value === undefined) {
      // In a JSON column null is a value.
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
        // The writer's dictionary would make -0 and 0 the same, whichever came first.
        return typeof value === 'number' ? value + 0 : undefined
      case 'integer':
        return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : undefined
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
    if (value === undefined) return undefined
    const kind = kindOfText(value)
    if (kind !== 'plain') this.unordered = true
    return kind === 'broken' ? undefined : value
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
    `row ${row} has ${describeValue(value)} in column ${name}, which must be ${kept[type]}${empty === 'never' ? '' : `, ${empty}`}`,
    'Fix the row, or change the type of the column in the schema.',
  )
}

function describeValue(value: unknown): string {
  if (typeof value === 'string') return `the text ${JSON.stringify(value.slice(0, 40))}`
  if (typeof value !== 'object' || value === null) return String(value)
  return value instanceof Date ? 'a Date' : `an ${Array.isArray(value) ? 'array' : 'object'}`
}

/** How Parquet holds each type of column. */
export const elements: Readonly<Record<ColumnType, Omit<SchemaElement, 'name'>>> = {
  text: TEXT,
  double: { type: 'DOUBLE' },
  integer: { type: 'INT64' },
  bigint: { type: 'INT64' },
  boolean: { type: 'BOOLEAN' },
  timestamp: MOMENT,
  json: JSON_TEXT,
}

function schemaOf(columns: readonly Column[]): SchemaElement[] {
  const own = columns.map(({ name, type, empty }): SchemaElement => {
    return { name, repetition_type: empty === 'never' ? 'REQUIRED' : 'OPTIONAL', ...elements[type] }
  })
  return [{ name: 'servo', num_children: columns.length }, ...own]
}
