import type { DuckDBConnection } from '@duckdb/node-api'
import { messageOf, ServoError } from '../../lib/error.ts'
import { openDuckDb } from '../../lib/sql/duckdb.ts'
import { quoteName } from '../../lib/sql/sql-text.ts'
import { type DataColumn, inferColumns } from '../columns.ts'
import { compileQuery, type Query } from '../sql.ts'
import { queriedRows, viewOfFiles } from './duckdb-query.ts'
import { appendRows, columnTypes } from './duckdb-values.ts'
import { type DataRow, type DataTable, sourceOfTable } from './values.ts'

/**
 * The answer to a query over tables, by a DuckDB of its own in memory. Tables that consist of files are read from there, the
 * others are loaded. Only the tables that a query mentions are opened.
 */
export async function* queryTables(
  query: Query,
  named: Readonly<Record<string, DataTable<DataRow>>>,
  columns?: readonly DataColumn[],
): AsyncGenerator<DataRow> {
  const { text, parameters, tables } = compileQuery(query)
  const { connection, close } = await openDuckDb()
  try {
    const wanted = Object.entries(named).filter(([name]) => text.toLowerCase().includes(name.toLowerCase()))
    for (const [name, table] of [...wanted, ...Object.entries(tables)]) await openRelation(connection, name, table)
    yield* queriedRows(connection, text, parameters, columns)
  } catch (error) {
    throw explained(error, Object.keys(named))
  } finally {
    close()
  }
}

async function openRelation(connection: DuckDBConnection, name: string, table: DataTable<DataRow>): Promise<void> {
  if (table.files.length > 0) {
    await connection.run(viewOfFiles(name, table.files))
    return
  }
  const rows = await table.rows()
  const columns = sourceOfTable(table)?.columns ?? inferColumns(rows)
  // DuckDB has no table without columns; a query over it can only count rows, of which there are none that say more.
  const list =
    columns.length > 0 ? columns.map(({ name: it, type }) => `${quoteName(it)} ${columnTypes[type]}`) : ['empty BOOLEAN']
  await connection.run(`CREATE TABLE ${quoteName(name)} (${list.join(', ')})`)
  await appendRows(connection, name, rows, columns)
}

/** What DuckDB says, as something that the author of the query can repair; anything else is let through as it is. */
function explained(error: unknown, names: readonly string[]): unknown {
  const message = messageOf(error)
    .replace(/^Failed to extract statements: /, '')
    .trim()
  if (!/^(Parser|Binder|Catalog|Conversion|Invalid Input|Out of Range) Error/.test(message)) return error
  const known = names.length > 0 ? ` It can name ${names.join(', ')}.` : ''
  return new ServoError('invalid', 'bad_query', message, {
    hint: `Change the query.${known}`,
    cause: error,
  })
}
