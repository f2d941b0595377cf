import type { DuckDBConnection } from '@duckdb/node-api'
import { lockDuckDb, OFFLINE, openDuckDb } from '../../lib/sql/duckdb.ts'
import { quoteName } from '../../lib/sql/sql-text.ts'
import { type DataColumn, inferColumns } from '../columns.ts'
import { compileQuery, type Query } from '../declare/sql.ts'
import { type DataRow, type DataTable, sourceOfTable } from '../declare/values.ts'
import { explainQueryError, queriedRows, viewOfFiles } from './duckdb-query.ts'
import { appendRows, columnTypes } from './duckdb-values.ts'

/**
 * Answers a query over tables with a DuckDB of its own in memory. Tables that consist of files are read from them, the
 * others are loaded. Only the tables that a query mentions are opened.
 */
export async function* queryTables(
  query: Query,
  named: Readonly<Record<string, DataTable<DataRow>>>,
  columns?: readonly DataColumn[],
): AsyncGenerator<DataRow> {
  const { text, parameters, tables } = compileQuery(query, named)
  const { connection, close } = await openDuckDb()
  try {
    const wanted = Object.entries(named).filter(([name]) => text.toLowerCase().includes(name.toLowerCase()))
    for (const [name, table] of [...wanted, ...Object.entries(tables)]) await openRelation(connection, name, table)
    yield* queriedRows(connection, text, parameters, columns)
  } catch (error) {
    throw explainQueryError(error, Object.keys(named))
  } finally {
    close()
  }
}

/** Prepares a query over tables that are empty and does not run it: the names of its columns, as far as they are known by then. */
export async function prepareQuery(
  query: Query,
  named: Readonly<Record<string, DataTable<DataRow>>>,
): Promise<readonly string[]> {
  const { text, tables } = compileQuery(query, named)
  const { connection, close } = await openDuckDb(OFFLINE)
  try {
    for (const [name, table] of [...Object.entries(named), ...Object.entries(tables)])
      await openRelation(connection, name, table)
    await lockDuckDb(connection, [])
    const prepared = await connection.prepare(text)
    return Array.from({ length: prepared.columnCount }, (_, index) => prepared.columnName(index))
  } catch (error) {
    throw explainQueryError(error, Object.keys(named))
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
  // DuckDB has no table without columns; a query over an empty table can only count its rows.
  const list =
    columns.length > 0 ? columns.map(({ name: it, type }) => `${quoteName(it)} ${columnTypes[type]}`) : ['empty BOOLEAN']
  await connection.run(`CREATE TABLE ${quoteName(name)} (${list.join(', ')})`)
  await appendRows(connection, name, rows, columns)
}
