import { resolve } from 'node:path'
import { type QueryResult, query } from '../../adapters/duckdb/query.ts'
import { orchestration } from '../../domain/index.ts'
import { type Manifest, newestManifest } from '../../engine/manifest.ts'
import { Paths, type Scope } from '../../engine/paths.ts'
import { sqlState } from '../../engine/sql-files.ts'
import { isServoError } from '../../lib/error.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { WorkspaceFlags } from '../main.ts'
import { openWorkspace } from '../open-workspace.ts'
import { writeCsv, writeJson, writeTable } from '../rows.ts'

/** The newest published state; what has been appended since is not in it. */
export async function queryCommand(dir: string, sql: string, flags: WorkspaceFlags & { csv?: boolean }): Promise<void> {
  const { store, scope } = await openWorkspace(dir, flags)
  const result = await queryNewest(dir, sql, store, scope)
  await (flags.json ? writeJson(result) : flags.csv ? writeCsv(result) : writeTable(result))
}

async function queryNewest(dir: string, sql: string, store: ObjectStore, scope: Scope): Promise<QueryResult> {
  const newest = (): Promise<Manifest> => newestManifest(store, new Paths(scope), scope)
  for (let manifest = await newest(); ; ) {
    try {
      return await query(
        sql,
        sqlState(store, orchestration, manifest, (path) => resolve(dir, path)),
      )
    } catch (error) {
      // A file that is gone may have been collected because there is a newer version by now.
      const newer = isServoError(error, 'corrupt') ? await newest() : manifest
      if (newer.number === manifest.number) throw error
      manifest = newer
    }
  }
}
