import type { DuckDBConnection } from '@duckdb/node-api'
import { quoteText } from './sql-text.ts'

/** Nothing is fetched from the network and nothing is kept: no extensions, no secrets. */
export const OFFLINE = {
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  allow_community_extensions: 'false',
  allow_persistent_secrets: 'false',
}

export interface OpenDuckDb {
  readonly connection: DuckDBConnection
  close(): void
}

/** A DuckDB of its own, in memory and on UTC. It is loaded by the first question: that takes a tenth of a second. */
export async function openDuckDb(settings: Readonly<Record<string, string>> = {}): Promise<OpenDuckDb> {
  const { DuckDBInstance } = await import('@duckdb/node-api')
  const instance = await DuckDBInstance.create(':memory:', settings)
  const connection = await instance.connect()
  const close = (): void => {
    connection.closeSync()
    instance.closeSync()
  }
  try {
    await connection.run("SET TimeZone = 'UTC'")
  } catch (error) {
    close()
    throw error
  }
  return { connection, close }
}

/** From here on nothing but these files, and files in these folders, can be opened, and no setting can be changed back. */
export async function lockDuckDb(
  connection: DuckDBConnection,
  files: readonly string[],
  folders: readonly string[] = [],
): Promise<void> {
  await connection.run(`SET allowed_paths = [${files.map(quoteText).join(', ')}]`)
  if (folders.length > 0) await connection.run(`SET allowed_directories = [${folders.map(quoteText).join(', ')}]`)
  await connection.run('SET enable_external_access = false')
  await connection.run('SET lock_configuration = true')
}
