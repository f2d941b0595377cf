import type { StandardSchemaV1 } from './standard-schema.ts'

/** `integer` is a whole number that JavaScript holds exactly, `json` anything that is kept as JSON text. */
export type ColumnType = 'text' | 'double' | 'integer' | 'bigint' | 'boolean' | 'timestamp' | 'json'

/** A column of a table: how it is stored, and how a stored value looks in a row. */
export interface DataColumn {
  readonly name: string
  readonly type: ColumnType
  /** How a row represents a missing value; `never` if the column always has one. */
  readonly empty: 'never' | 'null' | 'undefined'
}

/** The parts of a zod schema that define a column. Read by shape, because the project may have a zod of its own. */
interface ZodDefinition {
  readonly type?: string
  readonly innerType?: unknown
  readonly in?: unknown
  readonly out?: unknown
  readonly shape?: Readonly<Record<string, unknown>>
  readonly format?: string
  readonly options?: readonly unknown[]
  readonly values?: readonly unknown[]
  readonly entries?: Readonly<Record<string, unknown>>
}

const definitionIn = (schema: unknown): ZodDefinition =>
  (schema as { _zod?: { def?: ZodDefinition } } | undefined)?._zod?.def ?? {}

/** The columns that a schema promises, or undefined when it does not declare any (another library, a union). */
export const columnsOf = (schema: StandardSchemaV1): readonly DataColumn[] | undefined => columnsIn(schema)

function columnsIn(schema: unknown): readonly DataColumn[] | undefined {
  const { type, shape, out, innerType } = definitionIn(schema)
  if (type === 'pipe') return columnsIn(out)
  if (type === 'readonly') return columnsIn(innerType)
  if (type !== 'object' || shape === undefined) return undefined
  return Object.entries(shape).map(([name, member]) => ({ name, ...columnOf(member) }))
}

/** Wrappers around a type that do not change how it is stored. */
const wrappers = new Set(['default', 'prefault', 'catch', 'readonly', 'nonoptional'])

function columnOf(schema: unknown): Omit<DataColumn, 'name'> {
  const { type, innerType, out, format, values, entries } = definitionIn(schema)
  if (type === 'optional' || type === 'nullable') {
    const inner = columnOf(innerType)
    return { ...inner, empty: type === 'nullable' || inner.empty === 'null' ? 'null' : 'undefined' }
  }
  if (type === 'pipe') return columnOf(out)
  if (type !== undefined && wrappers.has(type)) {
    const inner = columnOf(innerType)
    return type === 'readonly' ? inner : { ...inner, empty: inner.empty === 'undefined' ? 'never' : inner.empty }
  }
  if (type === 'enum') return { type: sameType(Object.values(entries ?? {})), empty: 'never' }
  if (type === 'literal') return { type: sameType(values ?? []), empty: 'never' }
  return { type: storedAs(type, format), empty: 'never' }
}

function storedAs(type: string | undefined, format: string | undefined): ColumnType {
  if (type === 'string' || type === 'template_literal') return 'text'
  if (type === 'number') return format === 'safeint' || format?.includes('int32') ? 'integer' : 'double'
  if (type === 'bigint') return 'bigint'
  if (type === 'boolean') return 'boolean'
  if (type === 'date') return 'timestamp'
  return 'json'
}

function sameType(values: readonly unknown[]): ColumnType {
  const [type, ...others] = new Set(values.map(typeOfValue))
  return type === undefined || others.length > 0 ? 'json' : type
}

function typeOfValue(value: unknown): ColumnType {
  if (typeof value === 'string') return 'text'
  if (typeof value === 'number') return 'double'
  if (typeof value === 'bigint') return 'bigint'
  if (typeof value === 'boolean') return 'boolean'
  return value instanceof Date ? 'timestamp' : 'json'
}

/** A member of a row as its schema takes it, before it transforms anything. */
export interface RowField {
  readonly name: string
  /** `any` if the schema takes values of several types, or does not say. */
  readonly type: ColumnType | 'any'
  /** How a missing value is given to the schema; `never` if the schema requires one. */
  readonly empty: DataColumn['empty']
}

/** The fields that a schema takes, or undefined when it does not declare any. */
export const fieldsOf = (schema: StandardSchemaV1): readonly RowField[] | undefined => fieldsIn(schema)

function fieldsIn(schema: unknown): readonly RowField[] | undefined {
  const { type, shape, in: taken, innerType } = definitionIn(schema)
  if (type === 'pipe') return fieldsIn(taken)
  if (type === 'readonly') return fieldsIn(innerType)
  if (type !== 'object' || shape === undefined) return undefined
  return Object.entries(shape).map(([name, member]) => ({ name, ...fieldOf(member) }))
}

/** Wrappers that have a value of their own for one that is missing. */
const fillers = new Set(['optional', 'default', 'prefault', 'catch'])
/** What text can hold only as JSON. */
const structured = new Set(['object', 'array', 'tuple', 'record'])

function fieldOf(schema: unknown): Omit<RowField, 'name'> {
  const { type = '', innerType, in: taken, format, values, entries } = definitionIn(schema)
  if (type === 'pipe') return fieldOf(taken)
  if (type === 'readonly') return fieldOf(innerType)
  if (type === 'nullable') return { ...fieldOf(innerType), empty: 'null' }
  if (type === 'nonoptional') {
    const inner = fieldOf(innerType)
    return inner.empty === 'undefined' ? { ...inner, empty: 'never' } : inner
  }
  if (fillers.has(type)) {
    const inner = fieldOf(innerType)
    return inner.empty === 'null' ? inner : { ...inner, empty: 'undefined' }
  }
  const stored =
    type === 'enum' ? sameType(Object.values(entries ?? {})) : type === 'literal' ? sameType(values ?? []) : undefined
  const own = stored ?? storedAs(type, format)
  return { type: own === 'json' && !structured.has(type) ? 'any' : own, empty: 'never' }
}

/** The columns that rows have, for schemas that declare none. A column of which no row has a value is text. */
export function inferColumns(rows: Iterable<Readonly<Record<string, unknown>>>): readonly DataColumn[] {
  const columns = new Map<string, { type: ColumnType | undefined; empty: DataColumn['empty'] }>()
  let count = 0
  for (const row of rows) {
    for (const [name, value] of Object.entries(row)) {
      const known = columns.get(name) ?? { type: undefined, empty: count > 0 ? 'undefined' : 'never' }
      if (value === null || value === undefined) columns.set(name, { ...known, empty: value === null ? 'null' : 'undefined' })
      else {
        const type = typeOfValue(value)
        columns.set(name, { ...known, type: known.type === undefined || known.type === type ? type : 'json' })
      }
    }
    for (const [name, known] of columns) {
      if (known.empty === 'never' && !Object.hasOwn(row, name)) columns.set(name, { ...known, empty: 'undefined' })
    }
    count++
  }
  return [...columns].map(([name, { type, empty }]) => ({ name, type: type ?? 'text', empty }))
}
