import type { Registry } from '../../model/event.ts'
import type { Table } from '../../model/table.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { type FileRef, getChecked } from '../files/file-ref.ts'
import { State } from '../fold/state.ts'
import type { DeltaFiles, Manifest } from '../manifest/manifest.ts'
import { decodeRows } from '../parquet/parquet.ts'
import { removedKeysOf } from './removed-keys.ts'

/** The rows in memory as of a manifest: base and deltas, read side by side. History and sorted files stay where they are. */
export async function loadState(store: ObjectStore, registry: Registry, manifest: Manifest): Promise<State> {
  const state = new State(registry)
  const base = [...state.hotTables.keys()].map(async (table) => {
    const ref = manifest.base.tables[table.name]
    return { table, rows: ref === undefined ? [] : await readRows(store, table, ref) }
  })
  const deltas = manifest.l0.map((delta) => readDelta(store, state, delta.tables))
  // Awaited together: otherwise a delta that fails while the base is awaited would be an unhandled rejection.
  const [tables, applies] = await Promise.all([Promise.all(base), Promise.all(deltas)])
  for (const { table, rows } of tables) for (const row of rows) state.hotTable(table).load(row)
  for (const apply of applies) apply()
  return state
}

/** Reads a delta and returns a function that applies it, so that deltas can be read together and applied in order. */
export async function readDelta(
  store: ObjectStore,
  state: State,
  tables: Readonly<Record<string, DeltaFiles>>,
): Promise<() => void> {
  const parts = await Promise.all(
    Object.entries(tables).map(async ([name, files]) => {
      const table = state.tableNamed(name)
      const [rows, removed] = await Promise.all([
        files.rows === undefined ? [] : readRows(store, table, files.rows),
        files.removed === undefined ? [] : readRows(store, removedKeysOf(table), files.removed),
      ])
      return { table, rows, removed }
    }),
  )
  return () => {
    for (const { table, rows, removed } of parts) {
      if (table.storage.kind === 'cold') {
        for (const row of rows) state.coldTable(table).load(row)
        continue
      }
      const hot = state.hotTable(table)
      for (const row of rows) hot.load(row)
      for (const key of removed) {
        const row = hot.rowWithKey(key)
        if (row !== undefined) hot.unload(row)
      }
    }
  }
}

async function readRows(store: ObjectStore, table: Table, ref: FileRef) {
  return await decodeRows(table, await getChecked(store, ref), ref.path)
}
