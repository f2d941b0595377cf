import path from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { messageOf, ServoError } from '../../lib/error.ts'
import { fromDuckDb, toDuckDb } from '../../sdk/attempt/duckdb-values.ts'
import type { DataRow, DataTable } from '../../sdk/attempt/values.ts'
import type { DataColumn } from '../../sdk/columns.ts'
import { compileQuery, type Query } from '../../sdk/sql.ts'

export interface QueryWorld {
  /** What the query may name, besides the tables that stand in its `${}`. */
  readonly named: Readonly<Record<string, DataTable<DataRow>>>
  /** The columns that the answer should have, as far as that is known. */
  readonly columns: readonly DataColumn[] | undefined
  /** For what does not fit into memory. */
  readonly folder: string
  /** The Parquet files of a table. */
  filesOf(table: DataTable<DataRow>): Promise<readonly string[]>
}

/** A query fetches nothing from the network that its author did not ask for. */
const SETTINGS = {
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  allow_community_extensions: 'false',
  allow_persistent_secrets: 'false',
}

/** The answer to a query, by a DuckDB of its own in memory that can open the files of these tables and no others. */
export async function* runQuery(query: Query, world: QueryWorld): AsyncGenerator<DataRow> {
  const { text, parameters, tables } = compileQuery(query)
  const instance = await DuckDBInstance.create(':memory:', { ...SETTINGS, temp_directory: path.join(world.folder, 'spilled') })
  const connection = await instance.connect()
  try {
    await connection.run("SET TimeZone = 'UTC'")
    const mentioned = Object.entries(world.named).filter(([name]) => text.toLowerCase().includes(name.toLowerCase()))
    const files: string[] = []
    for (const [name, table] of [...mentioned, ...Object.entries(tables)]) {
      const its = await world.filesOf(table)
      await openView(connection, name, its)
      files.push(...its)
    }
    await lock(connection, files)
    const result = await connection.stream(text, parameters.map(toDuckDb))
    const names = result.deduplicatedColumnNames()
    const types = result.columnTypes()
    const expected = names.map((name) => world.columns?.find((column) => column.name === name))
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
  } catch (error) {
    throw explained(error, Object.keys(world.named))
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/**
 * Partitions may have been written before a column was added, so columns are matched by name. A folder called `region=eu`
 * somewhere above the files is no column of theirs.
 */
async function openView(connection: DuckDBConnection, name: string, files: readonly string[]): Promise<void> {
  const relation = `read_parquet([${files.map(quotedText).join(', ')}], union_by_name = true, hive_partitioning = false)`
  await connection.run(`CREATE VIEW "${name.replaceAll('"', '""')}" AS SELECT * FROM ${relation}`)
}

/** From here on nothing but these files can be opened, and no setting can be changed back. */
async function lock(connection: DuckDBConnection, files: readonly string[]): Promise<void> {
  await connection.run(`SET allowed_paths = [${files.map(quotedText).join(', ')}]`)
  await connection.run('SET enable_external_access = false')
  await connection.run('SET lock_configuration = true')
}

const quotedText = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** What DuckDB says, as something that the author of the query can repair; anything else is let through as it is. */
function explained(error: unknown, names: readonly string[]): unknown {
  const message = messageOf(error).trim()
  if (!/\b(Parser|Binder|Catalog|Conversion|Invalid Input|Out of Range|Permission) Error\b/.test(message)) return error
  const known = names.length > 0 ? ` It can name ${names.join(', ')}.` : ''
  return new ServoError('invalid', 'bad_query', message, { hint: `Change the query.${known}`, cause: error })
}
