import { existsSync } from 'node:fs'
import { queryNewest } from '../../server/sql-rows.ts'
import { badFlag, type WorkspaceFlags } from '../flags.ts'
import { openWorkspace } from '../open-workspace.ts'
import { writeCsv, writeJson, writeTable } from '../rows.ts'

/** Queries the newest published state, without events that were appended since. */
export async function queryCommand(
  first: string | undefined,
  second: string | undefined,
  flags: WorkspaceFlags & { csv?: boolean },
): Promise<void> {
  // The folder may be left out.
  const [given, sql] = second === undefined ? [undefined, first] : [first, second]
  if (sql === undefined || (given === undefined && existsSync(sql)))
    throw badFlag('no query given', 'Write it in quotes: servo query "show tables"')
  const { dir, store, scope } = await openWorkspace(given, flags)
  const result = await queryNewest(dir, store, scope, sql)
  await (flags.json ? writeJson(result) : flags.csv ? writeCsv(result) : writeTable(result))
}
