import type { Registry } from '../../model/event.ts'
import type { Table } from '../../model/table.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { FileRef } from '../files/file-ref.ts'
import { allTables } from '../fold/state.ts'
import { readHistory } from '../history/entries.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { escapePattern, fileList, layerQuery, layersOf, type Relations, type SqlLayer, tableQuery } from './tables.ts'

/** A table as a database shows it, and the files it needs for that. */
interface SqlView {
  readonly name: string
  readonly sql: string
  readonly files: readonly string[]
}

/** The tables of one manifest, opened on demand. */
export interface SqlState {
  readonly names: readonly string[]
  open(names: readonly string[]): Promise<SqlView[]>
  /** How DuckDB wants a file's name to be written. */
  spell(file: string): string
}

export function sqlState(
  store: ObjectStore,
  registry: Registry,
  manifest: Manifest,
  locate: (path: string) => string,
): SqlState {
  const tables = allTables(registry)
  return {
    names: tables.map((table) => table.name),
    open: async (names) => {
      const wanted = tables.filter((table) => names.includes(table.name))
      return await stateViews(store, manifest, wanted, locate)
    },
    spell: escapePattern,
  }
}

/**
 * One view per table over the files of one manifest. `locate` turns an object's path into one that the database can
 * open. Costs a read per page of history, and none if no requested table has any.
 */
async function stateViews(
  store: ObjectStore,
  manifest: Manifest,
  tables: readonly Table[],
  locate: (path: string) => string,
): Promise<SqlView[]> {
  const history = await historyFiles(store, manifest, tables)
  return tables.map((table) => {
    const relations: Relations = {}
    const files: string[] = []
    for (const layer of layersOf(table)) {
      const refs = layer === 'history' ? (history.get(table.name) ?? []) : directRefs(manifest, table, layer)
      const paths = refs.map((ref) => locate(ref.path))
      files.push(...paths)
      // A file has every key once, so that a single one needs no merging.
      const alone = layer === 'versions' && paths.length === 1
      if (paths.length > 0) relations[alone ? 'base' : layer] = `(${layerQuery(table, layer, fileList(paths))})`
    }
    return { name: table.name, sql: tableQuery(table, relations), files }
  })
}

function directRefs(manifest: Manifest, table: Table, layer: SqlLayer): FileRef[] {
  const base = manifest.base.tables[table.name]
  const deltas = manifest.l0.map((delta) => delta.tables[table.name] ?? {})
  const l0 = deltas.map((delta) => delta.rows)
  const found: Record<SqlLayer, (FileRef | undefined)[]> = {
    base: [base],
    l0,
    removed: deltas.map((delta) => delta.removed),
    versions: [...(manifest.sorted_files[table.name] ?? []), ...l0],
    history: [],
  }
  return found[layer].filter((ref) => ref !== undefined)
}

async function historyFiles(store: ObjectStore, manifest: Manifest, tables: readonly Table[]): Promise<Map<string, FileRef[]>> {
  const files = new Map<string, FileRef[]>(tables.map((table) => [table.name, []]))
  const sealed = tables.filter((table) => table.storage.kind === 'hot' && table.storage.sealedWith !== undefined)
  if (sealed.length === 0) return files
  const kept = (table: Table): number => manifest.dropped[table.name] ?? 0
  for await (const entry of readHistory(store, manifest, Math.min(...sealed.map(kept)))) {
    for (const table of sealed) {
      const ref = entry.tables[table.name]
      if (ref !== undefined && entry.publish >= kept(table)) files.get(table.name)?.push(ref)
    }
  }
  return files
}
