import { utcDay } from '../../lib/time.ts'
import { historyIndex } from '../../model/system-tables.ts'
import type { AnyRow, Table } from '../../model/table.ts'
import type { FileRef } from '../files/file-ref.ts'
import type { HistoryEntry } from '../manifest/manifest.ts'
import { Paths } from '../paths.ts'
import type { DraftInput } from './draft-input.ts'
import type { FileSet } from './file-set.ts'

/** Moves everything that has ended out of memory into history files, and notes in the index where it went. */
export function sealEnded(
  { state, manifest, scope, epoch, nowMs, publishedAt }: DraftInput,
  files: FileSet,
): { entry: HistoryEntry | undefined; owners: ReadonlyMap<Table, readonly AnyRow[]> } {
  const paths = new Paths(scope)
  const publish = manifest.publish + 1
  const sealed = new Map<Table, AnyRow[]>()
  const owners = new Map<Table, AnyRow[]>()
  for (const { owner, ownerId, row, state: endState, at } of [...state.ended()]) {
    const ownRows = owners.get(owner)
    if (ownRows === undefined) owners.set(owner, [row])
    else ownRows.push(row)
    for (const table of state.sealed.get(owner.name) ?? []) {
      const rows = state.hotTable(table).unloadUnder(ownerId)
      if (rows.length === 0) continue
      const all = sealed.get(table)
      if (all === undefined) sealed.set(table, rows)
      else for (const sealedRow of rows) all.push(sealedRow)
    }
    state.cold(historyIndex).merge({
      owner: owner.name,
      owner_id: ownerId,
      state: endState,
      ended_at: at,
      publish,
      row_version: row['row_version'],
    })
  }
  if (sealed.size === 0) return { entry: undefined, owners }
  const day = utcDay(nowMs)
  const tables: Record<string, FileRef> = {}
  for (const [table, rows] of sealed) {
    const path = paths.historyFile(table.name, day, publish, epoch)
    files.addRows(path, { table, rows, scope, codec: 'zstd' }, (ref) => {
      tables[table.name] = ref
    })
  }
  return { entry: { publish, sealed_at: publishedAt, tables }, owners }
}
