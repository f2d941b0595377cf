import { join, resolve } from 'node:path'
import type { QueryLimits, QueryResult, ViewSource } from '../adapters/duckdb/read-only-query.ts'
import { orchestration } from '../domain/index.ts'
import { newestManifest } from '../engine/manifest/stored-manifests.ts'
import { Paths, type Scope } from '../engine/paths.ts'
import { type SqlState, sqlState } from '../engine/sql/files.ts'
import { isServoError } from '../lib/error.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import { makeAssetViews, VIEW_TABLES } from './asset-views.ts'

/** Queries the newest published tables of a folder. DuckDB is loaded by the first query. */
export async function queryNewest(
  dir: string,
  store: ObjectStore,
  scope: Scope,
  sql: string,
  limits?: QueryLimits,
): Promise<QueryResult> {
  const { query } = await import('../adapters/duckdb/read-only-query.ts')
  const paths = new Paths(scope)
  const { root } = paths
  const newest = () => newestManifest(store, paths, scope)
  for (let manifest = await newest(); ; ) {
    try {
      const state = sqlState(store, orchestration, manifest, (path) => resolve(dir, path))
      return await query(sql, { ...state, views: assetViews(state, resolve(dir, root)) }, limits)
    } catch (error) {
      // A file that is gone may have been collected because there is a newer version by now.
      const newer = isServoError(error, 'corrupt') ? await newest() : manifest
      if (newer.number === manifest.number) throw error
      manifest = newer
    }
  }
}

/** Assets as views, for names in a query that no table has. */
function assetViews({ names, spell }: SqlState, folder: string): ViewSource {
  const plain = `${folder}/`
  const fileOf = (path: string): string => join(folder, path)
  return {
    needs: VIEW_TABLES,
    make: (asked, run) => makeAssetViews(asked, run, { taken: names, plain, spelled: spell(plain), fileOf }),
  }
}

/** Answers SQL over the published tables, with rows as JSON. `publishedRows` gives them the types of their table. */
export type Sql = (sql: string) => Promise<Record<string, unknown>[]>

/** Runs SQL over the newest published tables and collects all rows. */
export async function rowsOfNewest(...asked: Parameters<typeof queryNewest>): ReturnType<Sql> {
  const { columns, rows } = await queryNewest(...asked)
  const names = columns.map(({ name }) => name)
  const found: Record<string, unknown>[] = []
  for await (const batch of rows()) {
    for (const row of batch) found.push(Object.fromEntries(names.map((name, i) => [name, row[i]])))
  }
  return found
}
