import { messageOf, ServoError } from '../../lib/error.ts'
import { lockDuckDb, OFFLINE, openDuckDb } from '../../lib/sql/duckdb.ts'
import { type Plain, toPlain } from './plain-values.ts'
import { inspectStatement } from './statement.ts'

/** A table as it is shown to queries: a SELECT over files, and those files. */
export interface ShownTable {
  readonly name: string
  readonly sql: string
  readonly files: readonly string[]
}

export interface TableSource {
  /** All tables there are. */
  readonly names: readonly string[]
  /** Opens the tables that a query needs. Called once, with names from `names`. */
  open(names: readonly string[]): Promise<readonly ShownTable[]>
  /** How a file's name is spelled in SQL, if not as it is. */
  spell(file: string): string
}

export interface QueryResult {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  /** The rows in batches. Ends the query when it is left or has no more. */
  rows(): AsyncGenerator<Plain[][]>
}

/** Nothing is written either: DuckDB would spill into the folder we stand in. */
const SETTINGS = { ...OFFLINE, temp_directory: '' }

/**
 * Runs one query over some tables in a database of its own, in memory. The query can read the files of the tables it
 * names and nothing else, and write nothing. Only those tables are opened: each costs a look into every file it has.
 */
export async function query(sql: string, source: TableSource): Promise<QueryResult> {
  const { connection, close } = await openDuckDb(SETTINGS)
  try {
    // A view names its files several times; without the cache each mention reads every footer again.
    await connection.run('SET parquet_metadata_cache = true')
    const { names, wantsCatalog } = await inspectStatement(connection, sql)
    const tables = await source.open(wantsCatalog ? source.names : source.names.filter((name) => names.has(name)))
    for (const table of tables) await connection.run(`CREATE VIEW "${table.name}" AS ${table.sql}`)
    await lockDuckDb(
      connection,
      [...new Set(tables.flatMap((table) => table.files))].flatMap((file) => [file, source.spell(file)]),
    )
    const result = await connection.stream(sql)
    const types = result.columnTypes()
    return {
      columns: result.deduplicatedColumnNames().map((name, i) => ({ name, type: types[i]?.alias ?? String(types[i]) })),
      async *rows() {
        try {
          for await (const rows of result.yieldRows()) yield rows.map((row) => row.map((value, i) => toPlain(value, types[i])))
        } catch (error) {
          throw explainQueryError(error, source)
        } finally {
          close()
        }
      },
    }
  } catch (error) {
    close()
    throw explainQueryError(error, source)
  }
}

const REPAIR = 'Run `servo verify` to see what is damaged, then `servo rebuild`.'

const UNKNOWN_TABLE = /^Catalog Error: Table with name (.+?) does not exist!/s
const DAMAGED_FILE = /^(IO Error|Invalid Input Error|Invalid Error|TProtocolException)\b.*\.parquet/s
/** A file that was there when the lock was set: now that it is gone, DuckDB treats its name as a folder. */
const GONE_FILE = /^Permission Error: Cannot access file "(.*\.parquet)\/\*\*/s

/** Classifies an error of DuckDB by what the user can do about it. */
function explainQueryError(error: unknown, source: TableSource): unknown {
  if (error instanceof Error && error.name === 'ServoError') return error
  const message = messageOf(error).trim()
  const unknown = UNKNOWN_TABLE.exec(message)?.[1]
  if (unknown !== undefined) {
    return new ServoError('invalid', 'unknown_table', `table ${unknown} not found`, {
      hint: `Tables: ${[...source.names].sort().join(', ')}.`,
      cause: error,
    })
  }
  if (message.startsWith('Out of Memory Error')) {
    return new ServoError('unavailable', 'out_of_memory', message, {
      hint: 'Ask for fewer columns or rows at a time.',
      cause: error,
    })
  }
  const gone = GONE_FILE.exec(message)?.[1]
  if (gone !== undefined) return new ServoError('corrupt', 'file_missing', `${gone} is missing`, { hint: REPAIR, cause: error })
  if (DAMAGED_FILE.test(message)) {
    return new ServoError('corrupt', 'file_unreadable', message, {
      hint: REPAIR,
      cause: error,
    })
  }
  return new ServoError('invalid', 'bad_query', message, {
    hint: 'See docs/reference/tables.md of the package for the tables and their columns.',
    cause: error,
  })
}
