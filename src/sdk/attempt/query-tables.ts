import type { DuckDBConnection } from '@duckdb/node-api'
import { messageOf, ServoError } from '../../lib/error.ts'
import { type DataColumn, inferColumns } from '../columns.ts'
import { compileQuery, type Query } from '../sql.ts'
import { appendRows, columnTypes, fromDuckDb, toDuckDb } from './duckdb-values.ts'
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
  // Loaded when first used: most projects' assets never ask a query, and it takes a tenth of a second.
  const { DuckDBInstance } = await import('@duckdb/node-api')
  const { text, parameters, tables } = compileQuery(query)
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  try {
    await connection.run("SET TimeZone = 'UTC'")
    const wanted = Object.entries(named).filter(([name]) => text.toLowerCase().includes(name.toLowerCase()))
    for (const [name, table] of [...wanted, ...Object.entries(tables)]) await openRelation(connection, name, table)
    const result = await connection.stream(text, parameters.map(toDuckDb))
    const names = result.deduplicatedColumnNames()
    const types = result.columnTypes()
    const expected = names.map((name) => columns?.find((column) => column.name === name))
    for await (const batch of result.yieldRows()) {
      for (const values of batch) {
        const members = names.map((name, i) => [name, fromDuckDb(values[i] ?? null, types[i], expected[i])] as const)
        yield Object.fromEntries(members.filter(([, value]) => value !== undefined))
      }
    }
  } catch (error) {
    throw explained(error, Object.keys(named))
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

const quotedName = (name: string): string => `"${name.replaceAll('"', '""')}"`
const quotedText = (text: string): string => `'${text.replaceAll("'", "''")}'`

async function openRelation(connection: DuckDBConnection, name: string, table: DataTable<DataRow>): Promise<void> {
  if (table.files.length > 0) {
    const files = `[${table.files.map(quotedText).join(', ')}]`
    // Partitions may have been written before a column was added.
    await connection.run(
      `CREATE VIEW ${quotedName(name)} AS SELECT * FROM read_parquet(${files}, union_by_name = true, hive_partitioning = false)`,
    )
    return
  }
  const rows = await table.rows()
  const columns = sourceOfTable(table)?.columns ?? inferColumns(rows)
  // DuckDB has no table without columns; a query over it can only count rows, of which there are none that say more.
  const list =
    columns.length > 0 ? columns.map(({ name: it, type }) => `${quotedName(it)} ${columnTypes[type]}`) : ['empty BOOLEAN']
  await connection.run(`CREATE TABLE ${quotedName(name)} (${list.join(', ')})`)
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
