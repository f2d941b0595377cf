import { existsSync } from 'node:fs'
import type { QueryResult } from '../../adapters/duckdb/read-only-query.ts'
import type { QueryApi } from '../../api/query/query-contract.ts'
import { queryNewest } from '../../server/sql-rows.ts'
import { badFlag, type WorkspaceFlags } from '../flags.ts'
import { openWorkspace } from '../open-workspace.ts'
import { note } from '../output.ts'
import { type RemoteFlags, remoteServer } from '../remote/remote-server.ts'
import { writeCsv, writeJson, writeTable } from '../rows.ts'

/** Queries the newest published state, without events that were appended since. */
export async function queryCommand(
  first: string | undefined,
  second: string | undefined,
  flags: WorkspaceFlags & RemoteFlags & { csv?: boolean },
): Promise<void> {
  // The folder may be left out.
  const [given, sql] = second === undefined ? [undefined, first] : [first, second]
  if (sql === undefined || (given === undefined && existsSync(sql)))
    throw badFlag('no query given', 'Write it in quotes: servo query "show tables"')
  const remote = given === undefined ? remoteServer(flags) : undefined
  const result = remote === undefined ? await queried(given, flags, sql) : await asked(remote.query, sql)
  await (flags.json ? writeJson(result) : flags.csv ? writeCsv(result) : writeTable(result))
}

async function queried(given: string | undefined, flags: WorkspaceFlags, sql: string): Promise<QueryResult> {
  const { dir, store, scope } = await openWorkspace(given, flags)
  return await queryNewest(dir, store, scope, sql)
}

/** The most that a server answers. */
const MOST = { limit: 10_000, timeout_ms: 60_000 }

async function asked(query: QueryApi, sql: string): Promise<QueryResult> {
  const { columns, rows, truncated } = await query.ask({ sql, ...MOST })
  if (truncated) note(`there are more rows than the server gives at a time; these are the first ${rows.length}`)
  return {
    columns,
    async *rows() {
      yield rows
    },
  }
}
