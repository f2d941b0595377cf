import { ServoError } from '../../lib/error.ts'
import { quoteName } from '../../lib/sql/sql-text.ts'
import { type DataRow, type DataTable, isTable } from './values.ts'

/** A value in the `${}` of a query: a table, a part of a query, or a value that becomes a parameter. */
export type SqlValue = DataTable<unknown> | Query | string | number | bigint | boolean | SqlDate | null

/** The part of a Date that tells it from a list: of a list, the compiler would name the other methods that it lacks. */
interface SqlDate {
  toISOString(): string
}

/** A query as it was written. Values are never pasted into its text. */
export interface Query {
  readonly strings: readonly string[]
  readonly values: readonly SqlValue[]
}

export function sql(strings: TemplateStringsArray, ...values: readonly SqlValue[]): Query {
  return { strings, values }
}

export function isQuery(value: unknown): value is Query {
  if (typeof value !== 'object' || value === null || !('strings' in value && 'values' in value)) return false
  return Array.isArray(value.strings) && Array.isArray(value.values)
}

export type Parameter = string | number | bigint | boolean | Date | null

export interface CompiledQuery {
  /** With `$1`, `$2` … for parameters and a quoted name for each table. */
  readonly text: string
  readonly parameters: readonly Parameter[]
  /** The tables that stood in `${}`, by the name they got. */
  readonly tables: Readonly<Record<string, DataTable<DataRow>>>
}

/** `named` are tables that the query may call by name: one of them in `${}` is called so too, because errors quote the query. */
export function compileQuery(query: Query, named: Readonly<Record<string, DataTable<DataRow>>> = {}): CompiledQuery {
  const parameters: Parameter[] = []
  const known = new Map(Object.entries(named).map(([name, table]) => [table, name] as const))
  const names = new Map<DataTable<DataRow>, string>()
  const write = ({ strings, values }: Query): string =>
    strings.map((part, i) => (i < values.length ? part + placeholder(values[i]) : part)).join('')
  const placeholder = (value: unknown): string => {
    if (isTable(value)) {
      const own = known.get(value)
      if (own !== undefined) return quoteName(own)
      const name = names.get(value) ?? `servo_table_${names.size + 1}`
      names.set(value, name)
      return `"${name}"`
    }
    if (isQuery(value)) return write(value)
    if (!isParameter(value)) throw notSql(value)
    parameters.push(value)
    return `$${parameters.length}`
  }
  const text = write(query)
  return { text, parameters, tables: Object.fromEntries([...names].map(([table, name]) => [name, table])) }
}

function isParameter(value: unknown): value is Parameter {
  return value === null || value instanceof Date || ['string', 'number', 'bigint', 'boolean'].includes(typeof value)
}

function notSql(value: unknown): ServoError {
  const what = Array.isArray(value) ? 'an array' : typeof value === 'object' ? 'an object' : String(value)
  return new ServoError('invalid', 'bad_sql_value', `${what} cannot be a value in a query`, {
    hint: 'Use a table, a string, number, boolean, Date or null, or another sql`…` in the braces.',
  })
}
