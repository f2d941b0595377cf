import path from 'node:path'
import { lockDuckDb, OFFLINE, openDuckDb } from '../../lib/sql/duckdb.ts'
import { explainQueryError, queriedRows, viewOfFiles } from '../../sdk/attempt/duckdb-query.ts'
import type { DataColumn } from '../../sdk/columns.ts'
import { compileQuery, type Query } from '../../sdk/declare/sql.ts'
import type { DataRow, DataTable } from '../../sdk/declare/values.ts'

export interface QueryWorld {
  /** Tables that the query may name, besides those interpolated by `${}`. */
  readonly named: Readonly<Record<string, DataTable<DataRow>>>
  /** The columns that the result should have, if declared. */
  readonly columns: readonly DataColumn[] | undefined
  /** Where DuckDB spills rows that do not fit into memory. */
  readonly folder: string
  /** The Parquet files of a table. */
  filesOf(table: DataTable<DataRow>): Promise<readonly string[]>
}

/** Runs a query in a DuckDB of its own, in memory, that can open the files of these tables and no others. */
export async function* runQuery(query: Query, world: QueryWorld): AsyncGenerator<DataRow> {
  const { text, parameters, tables } = compileQuery(query, world.named)
  const { connection, close } = await openDuckDb({ ...OFFLINE, temp_directory: path.join(world.folder, 'spilled') })
  try {
    const mentioned = Object.entries(world.named).filter(([name]) => text.toLowerCase().includes(name.toLowerCase()))
    const files: string[] = []
    for (const [name, table] of [...mentioned, ...Object.entries(tables)]) {
      const its = await world.filesOf(table)
      await connection.run(viewOfFiles(name, its))
      files.push(...its)
    }
    await lockDuckDb(connection, files)
    yield* queriedRows(connection, text, parameters, world.columns)
  } catch (error) {
    throw explainQueryError(error, Object.keys(world.named))
  } finally {
    close()
  }
}
