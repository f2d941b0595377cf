import type { DuckDBConnection } from '@duckdb/node-api'
import { ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'

/** The properties of a query that matter before it runs. */
export interface Inspected {
  /** Names that stand where a table does, in lower case. Names of its own, such as those after WITH, are among them. */
  readonly names: ReadonlySet<string>
  /** It looks at the catalog itself, so that every table should be there. */
  readonly wantsCatalog: boolean
}

/** Functions that make rows and do nothing else. DuckDB has others: some write files, change settings or run other SQL. */
const HARMLESS = new Set([
  ...['range', 'generate_series', 'unnest', 'repeat', 'repeat_row', 'json_each', 'json_tree', 'histogram', 'histogram_values'],
  ...['read_parquet', 'parquet_scan', 'parquet_metadata', 'parquet_schema', 'parquet_file_metadata', 'parquet_kv_metadata'],
  ...[
    'duckdb_columns',
    'duckdb_tables',
    'duckdb_views',
    'duckdb_functions',
    'duckdb_types',
    'duckdb_settings',
    'duckdb_keywords',
  ],
  ...['duckdb_schemas', 'duckdb_databases', 'pragma_table_info', 'pragma_version', 'pg_timezone_names', 'summary'],
])

const ONE_SELECT = 'Write one SELECT (or FROM, WITH, DESCRIBE, SUMMARIZE, SHOW TABLES, EXPLAIN).'

const oneSelect = (sql: string): string =>
  /\bpivot\b/i.test(sql) ? `${ONE_SELECT} PIVOT needs its values: ON … IN (…).` : ONE_SELECT

/**
 * Reads a statement by DuckDB's own parser and accepts it only if it writes nothing. The database is locked as well, but a
 * lock that allows reading a file allows overwriting it: COPY TO is kept out here.
 */
export async function inspectStatement(connection: DuckDBConnection, sql: string): Promise<Inspected> {
  const parsed = await parse(connection, sql)
  const tree = parsed.error && EXPLAIN.test(sql) ? await parse(connection, sql.replace(EXPLAIN, '')) : parsed
  if (tree.error) {
    if (tree.error_type !== 'parser')
      throw new ServoError('invalid', 'not_a_select', 'only queries are allowed here', { hint: oneSelect(sql) })
    throw new ServoError('invalid', 'bad_sql', `the SQL cannot be parsed: ${tree.error_message}`, {
      hint: unparsedHint(sql),
    })
  }
  const count = tree.statements?.length ?? 0
  if (count !== 1) {
    throw new ServoError(
      'invalid',
      'not_one_statement',
      count === 0 ? 'the query is empty' : `the query has ${count} statements; only one is allowed`,
      { hint: ONE_SELECT },
    )
  }
  return inspectTree(tree.statements)
}

const BEGINNINGS = ['select', 'from', 'with', 'describe', 'summarize', 'show', 'explain', 'values', 'table', 'pivot', 'unpivot']
const KEYWORDS = ['select', 'from', 'where', 'group', 'order', 'having', 'limit', 'join', 'union', 'using', 'offset']

function unparsedHint(sql: string): string {
  // A key such as mart/revenue is a quotient to SQL.
  const [, key] = /\b(?:from|join|describe|summarize|show)\s+([\w.-]+(?:\/[\w.-]+)+)/i.exec(sql) ?? []
  if (key !== undefined) return `Write "${key}" in double quotes.`
  const [first = '', ...others] = sql.replaceAll(/"[^"]*"|'[^']*'/g, ' ').match(/[a-z_]\w*/gi) ?? []
  if (first === '') return ONE_SELECT
  if (!BEGINNINGS.includes(first.toLowerCase())) {
    const meant = nearest(first, BEGINNINGS)
    return meant === undefined ? ONE_SELECT : `Did you mean ${meant}?`
  }
  for (const word of others) {
    // One letter more or less, or two in the wrong order: names are rarely so close to a keyword.
    const meant = KEYWORDS.find((keyword) => isSlip(word.toLowerCase(), keyword))
    if (meant !== undefined) return `Did you mean ${meant} instead of ${word}?`
  }
  return 'Check the statement, and that the shell left its quotes: put all of it in single quotes.'
}

function isSlip(word: string, keyword: string): boolean {
  if (word === keyword) return false
  const isSwapped = word.length === keyword.length && [...word].sort().join('') === [...keyword].sort().join('')
  return isSwapped || (Math.abs(word.length - keyword.length) === 1 && (isOneLess(word, keyword) || isOneLess(keyword, word)))
}

/** True if the first is the second without one letter. */
const isOneLess = (shorter: string, longer: string): boolean =>
  [...longer].some((_, i) => longer.slice(0, i) + longer.slice(i + 1) === shorter)

/** What follows EXPLAIN is inspected like any statement, because EXPLAIN ANALYZE runs it. What this does not match is refused. */
const EXPLAIN = /^\s*explain\b(\s+analyze\b)?(\s*\([^()]*\))?/i

interface Parsed {
  readonly error: boolean
  readonly error_type?: string
  readonly error_message?: string
  readonly statements?: readonly unknown[]
}

async function parse(connection: DuckDBConnection, sql: string): Promise<Parsed> {
  const reader = await connection.runAndReadAll('SELECT json_serialize_sql($1::VARCHAR)', [sql])
  return JSON.parse(String(reader.getRows()[0]?.[0])) as Parsed
}

function inspectTree(tree: unknown): Inspected {
  const names = new Set<string>()
  let wantsCatalog = false
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    const { type, table_name, schema_name, show_type } = node as Record<string, unknown>
    if (type === 'BASE_TABLE') {
      names.add(String(table_name).toLowerCase())
      if (schema_name !== '' && schema_name !== 'main') wantsCatalog = true
    }
    if (type === 'SHOW_REF' && show_type === 'SHOW_UNQUALIFIED') wantsCatalog = true
    if (type === 'TABLE_FUNCTION') {
      checkFunction((node as { function?: { function_name?: string } }).function?.function_name)
      wantsCatalog = true
    }
    for (const child of Object.values(node)) visit(child)
  }
  visit(tree)
  return { names, wantsCatalog }
}

function checkFunction(name = 'this function'): void {
  if (HARMLESS.has(name.toLowerCase())) return
  throw new ServoError(
    'invalid',
    'function_not_allowed',
    `${name}() is not allowed: a query can read only the tables and assets of this project`,
    {
      hint: 'Query the tables of the workspace; `SHOW TABLES` lists them.',
      facts: { function: name },
    },
  )
}
