import { resolve } from 'node:path'
import { query } from '../../adapters/duckdb/query.ts'
import { orchestration } from '../../domain/index.ts'
import { newestManifest } from '../../engine/manifest.ts'
import { Paths } from '../../engine/paths.ts'
import { sqlState } from '../../engine/sql-files.ts'
import type { WorkspaceFlags } from '../main.ts'
import { openWorkspace } from '../open-workspace.ts'
import { writeCsv, writeJson, writeTable } from '../rows.ts'

/** The newest published state; what has been appended since is not in it. */
export async function queryCommand(dir: string, sql: string, flags: WorkspaceFlags & { csv?: boolean }): Promise<void> {
  const { store, scope } = await openWorkspace(dir, flags)
  const manifest = await newestManifest(store, new Paths(scope), scope)
  const result = await query(
    sql,
    sqlState(store, orchestration, manifest, (path) => resolve(dir, path)),
  )
  await (flags.json ? writeJson(result) : flags.csv ? writeCsv(result) : writeTable(result))
}
