import type { DuckDBConnection } from '@duckdb/node-api'
import { messageOf, ServoError } from '../../lib/error.ts'
import { quoteName, quoteText } from '../../lib/sql/sql-text.ts'
import type { DataColumn } from '../columns.ts'
import type { Parameter } from '../declare/sql.ts'
import type { DataRow } from '../declare/values.ts'
import { fromDuckDb, toDuckDb } from './duckdb-values.ts'

/**
 * Shows files as a table. Partitions may have been written before a column was added, so columns are matched by name. A folder
 * called `region=eu` somewhere above the files is not one of their columns.
 */
export function viewOfFiles(name: string, files: readonly string[]): string {
  const relation = `read_parquet([${files.map(quoteText).join(', ')}], union_by_name = true, hive_partitioning = false)`
  return `CREATE VIEW ${quoteName(name)} AS SELECT * FROM ${relation}`
}

const ABOUT_THE_QUERY = /^(Parser|Binder|Catalog|Conversion|Invalid Input|Out of Range|Permission) Error/

/** Turns an error that is about the query into one with a hint for its author, and returns any other as it is. */
export function explainQueryError(error: unknown, names: readonly string[]): unknown {
  const message = messageOf(error)
    .replace(/^Failed to extract statements: /, '')
    .trim()
  if (!ABOUT_THE_QUERY.test(message)) return error
  // DuckDB says "disabled by configuration", which no author can change.
  if (/^Permission Error: .*(?:file|folder|directory|disabled by configuration)/is.test(message)) {
    const hint =
      'Read the file in `run`, or make it an input: declare a source() with its path, or a command() that writes rows.'
    return new ServoError('invalid', 'bad_query', `a query can read only its inputs: ${message}`, { hint, cause: error })
  }
  const known = names.length > 0 ? ` It can name ${names.join(', ')}.` : ''
  return new ServoError('invalid', 'bad_query', message, { hint: `Change the query.${known}`, cause: error })
}

/** The answer to a query, row by row. `columns` are the expected columns, as far as they are known. */
export async function* queriedRows(
  connection: DuckDBConnection,
  text: string,
  parameters: readonly Parameter[],
  columns: readonly DataColumn[] | undefined,
): AsyncGenerator<DataRow> {
  const result = await connection.stream(text, parameters.map(toDuckDb))
  const names = result.deduplicatedColumnNames()
  const types = result.columnTypes()
  const expected = names.map((name) => columns?.find((column) => column.name === name))
  for await (const batch of result.yieldRows()) {
    for (const values of batch) {
      const row: Record<string, unknown> = {}
      for (const [i, name] of names.entries()) {
        const value = fromDuckDb(values[i] ?? null, types[i], expected[i])
        if (value !== undefined) row[name] = value
      }
      yield row
    }
  }
}
