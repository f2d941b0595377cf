import { getChecked } from '../engine/files/file-ref.ts'
import { sortedByKey } from '../engine/fold/row-merge.ts'
import { readHistory } from '../engine/history/entries.ts'
import { newestManifest } from '../engine/manifest/stored-manifests.ts'
import { decodeRows } from '../engine/parquet/parquet.ts'
import { Paths, type Scope } from '../engine/paths.ts'
import { loadState } from '../engine/publish/load-state.ts'
import { scanSortedFile } from '../engine/sorted/merge-files.ts'
import type { Registry } from '../model/event.ts'
import { historyIndex, parkedEvents } from '../model/system-tables.ts'
import type { AnyRow } from '../model/table.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import type { Snapshot } from './histories/fold.ts'

/** All rows that the newest manifest leads to, read from its files alone: in memory's shape, sorted by key. */
export async function storedRows(store: ObjectStore, scope: Scope, registry: Registry): Promise<Snapshot> {
  const manifest = await newestManifest(store, new Paths(scope), scope)
  const state = await loadState(store, registry, manifest)
  const rows = new Map<string, AnyRow[]>()
  for await (const entry of readHistory(store, manifest)) {
    for (const [table, file] of Object.entries(entry.tables)) {
      const sealed = await decodeRows(state.tableNamed(table), await getChecked(store, file))
      rows.set(table, [...(rows.get(table) ?? []), ...sealed])
    }
  }
  const snapshot: Snapshot = {}
  for (const [table, hot] of state.hotTables)
    snapshot[table.name] = sortedByKey(table, [...hot.all(), ...(rows.get(table.name) ?? [])])
  for (const row of snapshot[parkedEvents.name] ?? []) delete row['parked_at']
  for (const [table, cold] of state.coldTables) {
    // Where a thing was sealed depends on when; that it ended is in its own row.
    if (table.name === historyIndex.name) continue
    const all = [...cold.recent.values()]
    for (const file of manifest.sorted_files[table.name] ?? [])
      for await (const row of scanSortedFile(store, table, file)) all.push(row)
    snapshot[table.name] = sortedByKey(table, all)
  }
  return snapshot
}
