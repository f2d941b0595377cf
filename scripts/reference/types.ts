import { z } from 'zod'
import { columnTypes } from '../../src/sdk/attempt/duckdb-values.ts'
import { type ColumnType, columnsOf, type DataColumn } from '../../src/sdk/columns.ts'
import { elements } from '../../src/worker/values/rows-write.ts'
import { code, page, table } from './markdown.ts'

/** Schemas as authors write them, those that are stored alike in one row. The page says what the code makes of them. */
const written: readonly Readonly<Record<string, z.ZodType>>[] = [
  { 'z.string()': z.string(), 'z.email()': z.email(), 'z.url()': z.url(), 'z.uuid()': z.uuid(), 'z.iso.date()': z.iso.date() },
  { 'z.templateLiteral([…])': z.templateLiteral(['order-', z.number()]) },
  { "z.enum(['eu', 'us'])": z.enum(['eu', 'us']), "z.literal('eu')": z.literal('eu') },
  { 'z.int()': z.int(), 'z.int32()': z.int32() },
  { 'z.number()': z.number(), 'z.number().int()': z.number().int(), 'z.literal([1, 2])': z.literal([1, 2]) },
  { 'z.bigint()': z.bigint() },
  { 'z.boolean()': z.boolean(), 'z.stringbool()': z.stringbool() },
  { 'z.date()': z.date(), 'z.coerce.date()': z.coerce.date() },
  {
    'z.object({…})': z.object({}),
    'z.array(…)': z.array(z.string()),
    'z.record(…)': z.record(z.string(), z.string()),
    'z.tuple([…])': z.tuple([z.string()]),
  },
  { 'z.union([…])': z.union([z.string(), z.number()]), 'z.unknown()': z.unknown(), 'z.json()': z.json() },
  { "z.literal(['eu', 1])": z.literal(['eu', 1]) },
]

/** Wrappers, by what they do to a text column. */
const wrapped: readonly (readonly [text: string, schema: z.ZodType])[] = [
  ['z.string()', z.string()],
  ['z.string().nullable()', z.string().nullable()],
  ['z.string().optional()', z.string().optional()],
  ['z.string().nullish()', z.string().nullish()],
  ["z.string().default('eu')", z.string().default('eu')],
  ["z.string().catch('eu')", z.string().catch('eu')],
  ['z.string().transform(Number).pipe(z.number())', z.string().transform(Number).pipe(z.number())],
]

function columnOf(schema: z.ZodType): DataColumn {
  const [column] = columnsOf(z.object({ column: schema })) ?? []
  if (column === undefined) throw new Error('an object declares its columns')
  return column
}

function sameType(schemas: Readonly<Record<string, z.ZodType>>): ColumnType {
  const [type, ...others] = new Set(Object.values(schemas).map((schema) => columnOf(schema).type))
  if (type === undefined || others.length > 0)
    throw new Error(`${Object.keys(schemas).join(', ')} are not stored alike: split the row`)
  return type
}

function parquetText(type: ColumnType): string {
  const { type: physical, logical_type: logical } = elements[type]
  if (logical === undefined) return code(physical ?? '')
  const detail =
    logical.type === 'TIMESTAMP' ? `TIMESTAMP(${logical.unit}, ${logical.isAdjustedToUTC ? 'UTC' : 'local'})` : logical.type
  return `${code(physical ?? '')} ${code(detail)}`
}

/** What a row has after it was stored and read again. */
const read: Readonly<Record<ColumnType, string>> = {
  text: '`string`',
  double: '`number`',
  integer: '`number`',
  bigint: '`bigint`',
  boolean: '`boolean`',
  timestamp: '`Date`, to the millisecond',
  json: 'the JSON value',
}

/** What does not fit fails the attempt with `row_does_not_fit`. */
const fits: Readonly<Record<ColumnType, string>> = {
  text: 'any text without half a surrogate pair',
  double: 'any number, `NaN` and infinities included; -0 becomes 0',
  integer: 'whole numbers up to 2^53',
  bigint: '64 bits with a sign',
  boolean: '',
  timestamp: 'any valid `Date`',
  json: 'anything that JSON can hold',
}

export function typesPage(): string {
  return page(
    '# Types: zod, Parquet, SQL',
    'The schema of a table decides the columns of its Parquet files. Rows are validated, written in the order in which the body gave them, and compressed with ZSTD.',
    table(
      ['schema', 'Parquet', 'in SQL', 'read as', 'takes'],
      written.map((schemas) => {
        const type = sameType(schemas)
        return [Object.keys(schemas).map(code).join(', '), parquetText(type), code(columnTypes[type]), read[type], fits[type]]
      }),
    ),
    '`z.number()` is a `DOUBLE` even if every value is whole, and so is `z.number().int()`: declare `z.int()` for ids and counts. A `z.iso.date()` is text; a column of a query that is a `DATE` is read as text too, such as `2025-01-15`, which is the key of a daily partition.',
    '## Missing values',
    table(
      ['schema', 'column', 'type', 'a missing value is read as'],
      wrapped.map(([text, schema]) => {
        const { type, empty } = columnOf(schema)
        return [
          code(text),
          empty === 'never' ? '`REQUIRED`' : '`OPTIONAL`',
          code(columnTypes[type]),
          empty === 'never' ? '' : code(empty),
        ]
      }),
    ),
    'A wrapper counts as its inner type, and a pipe as its output: a row is stored as the schema returns it.',
    '## Other schemas',
    'A table whose schema is not a zod object (valibot, arktype, a zod union) has the columns that its first rows have. A column whose values have different types is `JSON`, one that is always empty is text. Give the table a zod object where the columns matter: `servo check` can then check the queries that read it.',
  )
}
