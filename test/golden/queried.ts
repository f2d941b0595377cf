import type { Plain } from '../../src/adapters/duckdb/plain-values.ts'
import { query } from '../../src/adapters/duckdb/read-only-query.ts'
import { fsStore } from '../../src/adapters/fs/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { newestManifest } from '../../src/engine/manifest/stored-manifests.ts'
import { Paths, type Scope } from '../../src/engine/paths.ts'
import { sqlState } from '../../src/engine/sql/files.ts'
import { canonicalJson } from '../../src/lib/json.ts'
import { toIso } from '../../src/lib/time.ts'
import type { Columns } from '../../src/model/column.ts'
import type { AnyRow, Table } from '../../src/model/table.ts'

export interface Answer {
  readonly columns: Record<string, string>
  readonly rows: Record<string, Plain>[]
}

/** What `servo query` would print about a folder. */
export async function ask(dir: string, scope: Scope, sql: string): Promise<Answer> {
  const store = fsStore(dir)
  const manifest = await newestManifest(store, new Paths(scope), scope)
  const result = await query(
    sql,
    sqlState(store, orchestration, manifest, (path) => `${store.dir}/${path}`),
  )
  const rows: Record<string, Plain>[] = []
  for await (const batch of result.rows()) {
    for (const row of batch) rows.push(Object.fromEntries(result.columns.map(({ name }, i) => [name, row[i] as Plain])))
  }
  return { columns: Object.fromEntries(result.columns.map(({ name, type }) => [name, type])), rows }
}

/** A row in memory as a query prints it. */
export function shown(table: Table, scope: Scope, row: AnyRow): AnyRow {
  const columns = Object.entries(table.columns as Columns).map(([name, { kind }]) => {
    const value: unknown = row[name] ?? null
    return [name, kind === 'timestamp' && value !== null ? toIso(value as number) : value]
  })
  return { ...scope, ...Object.fromEntries(columns), row_version: row['row_version'] }
}

/** Rows in no order, to compare. */
export const asSet = (rows: readonly AnyRow[]): string[] => rows.map((row) => canonicalJson(row)).sort()
