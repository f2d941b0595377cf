import type { DuckDBConnection } from '@duckdb/node-api'
import { quoteName, quoteText } from '../../lib/sql/sql-text.ts'
import type { DataColumn } from '../columns.ts'
import type { Parameter } from '../sql.ts'
import { fromDuckDb, toDuckDb } from './duckdb-values.ts'
import type { DataRow } from './values.ts'

/**
 * Shows files as a table. Partitions may have been written before a column was added, so columns are matched by name. A folder
 * called `region=eu` somewhere above the files is no column of theirs.
 */
export function viewOfFiles(name: string, files: readonly string[]): string {
  const relation = `read_parquet([${files.map(quoteText).join(', ')}], union_by_name = true, hive_partitioning = false)`
  return `CREATE VIEW ${quoteName(name)} AS SELECT * FROM ${relation}`
}

/** The answer to a query, row by row. `columns` are those that it should have, as far as that is known. */
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
