import { queryNewest } from '../../server/sql-rows.ts'
import type { WorkspaceFlags } from '../flags.ts'
import { openWorkspace } from '../open-workspace.ts'
import { writeCsv, writeJson, writeTable } from '../rows.ts'

/** Queries the newest published state, without events that were appended since. */
export async function queryCommand(dir: string, sql: string, flags: WorkspaceFlags & { csv?: boolean }): Promise<void> {
  const { store, scope } = await openWorkspace(dir, flags)
  const result = await queryNewest(dir, store, scope, sql)
  await (flags.json ? writeJson(result) : flags.csv ? writeCsv(result) : writeTable(result))
}
