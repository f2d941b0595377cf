import type { DuckDBConnection } from '@duckdb/node-api'
import { messageOf, ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import { lockDuckDb, OFFLINE, openDuckDb } from '../../lib/sql/duckdb.ts'
import { quoteName } from '../../lib/sql/sql-text.ts'
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
  /** Views of other data, made for names that no table has. */
  readonly views?: ViewSource
}

/** Runs SQL and answers with its rows as JSON has them. */
export type RunSql = (sql: string) => Promise<Record<string, Plain>[]>

export interface ViewSource {
  /** The tables that it asks. */
  readonly needs: readonly string[]
  /** Creates the views that have one of these names, which are in lower case. Called before the database is locked. */
  make(names: ReadonlySet<string>, run: RunSql): Promise<MoreViews>
}

export interface MoreViews {
  /** All that could be named. */
  readonly names: readonly string[]
  /** The folders with the files that the views read, as they are and as they are spelled. A list of 100,000 files would take seconds to set. */
  readonly folders: readonly string[]
  /** Why there is no view, by names in lower case. */
  readonly absent: ReadonlyMap<string, ServoError>
}

export interface QueryResult {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  /** The rows in batches. Ends the query when it is left or has no more. */
  rows(): AsyncGenerator<Plain[][]>
}

/** Settings of DuckDB that limit what a query may use. */
export interface QueryLimits {
  readonly memory_limit?: string
  readonly threads?: string
}

/** Nothing is written either: DuckDB would spill into the folder we stand in. */
const SETTINGS = { ...OFFLINE, temp_directory: '' }

/**
 * Runs one query over some tables in a database of its own, in memory. The query can read the files of the tables it
 * names and nothing else, and write nothing. Only those tables are opened: each costs a look into every file it has.
 */
export async function query(sql: string, source: TableSource, limits: QueryLimits = {}): Promise<QueryResult> {
  const { connection, close } = await openDuckDb({ ...SETTINGS, ...limits })
  let more: MoreViews = { names: [], folders: [], absent: new Map() }
  try {
    // A view names its files several times; without the cache each mention reads every footer again.
    await connection.run('SET parquet_metadata_cache = true')
    const { names, wantsCatalog } = await inspectStatement(connection, sql)
    const others = new Set([...names].filter((name) => !source.names.includes(name)))
    const views = others.size > 0 ? source.views : undefined
    const isWanted = (name: string): boolean => wantsCatalog || names.has(name) || views?.needs.includes(name) === true
    const tables = await source.open(source.names.filter(isWanted))
    for (const table of tables) await connection.run(`CREATE VIEW ${quoteName(table.name)} AS ${table.sql}`)
    if (views !== undefined) more = await views.make(others, (text) => rowsOf(connection, text))
    const files = new Set(tables.flatMap((table) => table.files))
    const spelled = [...files].flatMap((file) => [file, source.spell(file)])
    await lockDuckDb(connection, spelled, more.folders)
    const result = await connection.stream(sql)
    const types = result.columnTypes()
    return {
      columns: result.deduplicatedColumnNames().map((name, i) => ({ name, type: types[i]?.alias ?? String(types[i]) })),
      async *rows() {
        try {
          for await (const rows of result.yieldRows()) yield rows.map((row) => row.map((value, i) => toPlain(value, types[i])))
        } catch (error) {
          throw explainQueryError(error, source, more)
        } finally {
          close()
        }
      },
    }
  } catch (error) {
    close()
    throw explainQueryError(error, source, more)
  }
}

async function rowsOf(connection: DuckDBConnection, sql: string): Promise<Record<string, Plain>[]> {
  const reader = await connection.runAndReadAll(sql)
  const [names, types] = [reader.columnNames(), reader.columnTypes()]
  return reader.getRows().map((row) => Object.fromEntries(names.map((name, i) => [name, toPlain(row[i] ?? null, types[i])])))
}

/** How many an error names. */
const SHOWN_VIEWS = 20

/** What a user can do about a file that is damaged or gone: tables follow from the ledger, data does not. */
const repairOf = (message: string): string =>
  /\/data\//.test(message)
    ? 'Materialize the asset again: the file with its data was deleted or damaged.'
    : 'Run `servo verify` to see what is damaged, then `servo rebuild`.'

/** Those who know dbt write mart.revenue, which names a schema that is not there. */
const UNKNOWN_TABLE = /^Catalog Error: Table with name "?(.+?)"? does not exist(?:!| because schema)/s
const DAMAGED_FILE = /^(IO Error|Invalid Input Error|Invalid Error|TProtocolException)\b.*\.(?:parquet|json)\b/s
/** A file that was there when the lock was set: now that it is gone, DuckDB treats its name as a folder. */
const GONE_FILE = /^Permission Error: Cannot access file "(.*\.parquet)\/\*\*/s

const UNKNOWN_COLUMN = /^Binder Error: Referenced column "(.+?)" not found/s
/** 2025-01-15 without quotes is a difference of numbers, to which the texts of a column are converted. */
const NOT_A_NUMBER = /^Conversion Error: Could not convert string '.*' to U?(?:INT|BIGINT|HUGEINT|DOUBLE|DECIMAL)/s
const SEE_TABLES = 'See docs/reference/tables.md of the package for the tables and their columns.'
const QUOTE_TEXT = `Text needs single quotes: partition = '2025-01-15'. DESCRIBE lists the columns of a table or asset.`

/** True if something that a column is compared with was taken for a column, or for a number. */
function lacksQuotes(message: string): boolean {
  const column = UNKNOWN_COLUMN.exec(message)?.[1]
  if (column === undefined) return NOT_A_NUMBER.test(message)
  return [...message.matchAll(/[=<>]\s*"?([^\s"]+)/g)].some(([, compared]) => compared === column)
}

/** Classifies an error of DuckDB by what the user can do about it. */
function explainQueryError(error: unknown, source: TableSource, more: MoreViews): unknown {
  if (error instanceof Error && error.name === 'ServoError') return error
  const message = messageOf(error).trim()
  const unknown = UNKNOWN_TABLE.exec(message)?.[1]
  if (unknown !== undefined) {
    const absent = more.absent.get(unknown.toLowerCase())
    if (absent !== undefined) return absent
    const views = more.names.slice(0, SHOWN_VIEWS).map(quoteName).join(', ')
    const assets = views === '' ? '' : ` Assets: ${views}${more.names.length > SHOWN_VIEWS ? ', …' : ''}.`
    const near = nearest(unknown, [...source.names, ...more.names])
    const meant = near === undefined ? '' : `Did you mean ${/^\w+$/.test(near) ? near : quoteName(near)}? `
    return new ServoError('invalid', 'unknown_table', `table ${unknown} not found`, {
      hint: `${meant}Tables: ${[...source.names].sort().join(', ')}.${assets}`,
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
  if (gone !== undefined)
    return new ServoError('corrupt', 'file_missing', `${gone} is missing`, { hint: repairOf(message), cause: error })
  if (DAMAGED_FILE.test(message)) {
    return new ServoError('corrupt', 'file_unreadable', message, {
      hint: repairOf(message),
      cause: error,
    })
  }
  return new ServoError('invalid', 'bad_query', message, {
    hint: lacksQuotes(message) ? QUOTE_TEXT : SEE_TABLES,
    cause: error,
  })
}
