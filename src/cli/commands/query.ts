import { resolve } from 'node:path'
import { query, type TableSource } from '../../adapters/duckdb/query.ts'
import { orchestration } from '../../domain/index.ts'
import { newestManifest } from '../../engine/manifest.ts'
import { Paths } from '../../engine/paths.ts'
import { escapePattern } from '../../engine/sql.ts'
import { stateViews } from '../../engine/sql-files.ts'
import { allTables } from '../../engine/state.ts'
import type { WorkspaceFlags } from '../main.ts'
import { openWorkspace } from '../open-workspace.ts'
import { writeCsv, writeJson, writeTable } from '../rows.ts'

/** The newest published state; what has been appended since is not in it. */
export async function queryCommand(dir: string, sql: string, flags: WorkspaceFlags & { csv?: boolean }): Promise<void> {
  const { store, scope } = await openWorkspace(dir, flags)
  const manifest = await newestManifest(store, new Paths(scope), scope)
  const tables = allTables(orchestration)
  const source: TableSource = {
    names: tables.map((table) => table.name),
    open: async (names) =>
      await stateViews(
        store,
        manifest,
        tables.filter((table) => names.includes(table.name)),
        (path) => resolve(dir, path),
      ),
    spell: escapePattern,
  }
  const result = await query(sql, source)
  await (flags.json ? writeJson(result) : flags.csv ? writeCsv(result) : writeTable(result))
}
