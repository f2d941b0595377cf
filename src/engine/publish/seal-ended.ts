import { utcDay } from '../../lib/time.ts'
import { historyIndex } from '../../model/system-tables.ts'
import type { AnyRow, Table } from '../../model/table.ts'
import { historyTable } from '../history/shape.ts'
import type { HistoryEntry, HistoryFile } from '../manifest/manifest.ts'
import { Paths } from '../paths.ts'
import type { DraftInput } from './draft-input.ts'
import type { FileSet } from './file-set.ts'

export interface Sealed {
  /** The owners that have left memory, by table. */
  readonly owners: ReadonlyMap<Table, readonly AnyRow[]>
  /** The files that their rows became; undefined if nothing has ended. Called when these are encoded. */
  entry(): HistoryEntry | undefined
}

/** Moves everything that has ended out of memory into history files, and notes in the index where it went. */
export function sealEnded(input: DraftInput, files: FileSet): Sealed {
  const { state, manifest, sealing } = input
  const owners = new Map<Table, AnyRow[]>()
  const ids = new Map<Table, string[]>()
  for (const { owner, ownerId, row, state: endState, at } of [...state.ended()]) {
    const ownRows = owners.get(owner)
    if (ownRows === undefined) owners.set(owner, [row])
    else ownRows.push(row)
    const ownIds = ids.get(owner)
    if (ownIds === undefined) ids.set(owner, [ownerId])
    else ownIds.push(ownerId)
    state.cold(historyIndex).merge({
      owner: owner.name,
      owner_id: ownerId,
      state: endState,
      ended_at: at,
      publish: manifest.publish + 1,
      listed_at: owner.listed === undefined ? null : row[owner.listed.at],
      row_version: row['row_version'],
    })
  }
  for (const [owner, ended] of ids) {
    for (const table of state.sealed.get(owner.name) ?? []) {
      const rows = state.hotTable(table).unloadUnder(ended)
      if (rows.size > 0) sealing.set(table, rows)
    }
  }
  return { owners, entry: writeSealed(input, files) }
}

/** Adds a file for each table that has sealed rows. */
function writeSealed(
  { manifest, scope, epoch, nowMs, publishedAt, sealing, history }: DraftInput,
  files: FileSet,
): Sealed['entry'] {
  const paths = new Paths(scope)
  const publish = manifest.publish + 1
  const day = utcDay(nowMs)
  const tables: Record<string, HistoryFile> = {}
  const spans: Record<string, readonly [number, number]> = {}
  const place = (table: Table) => (ref: HistoryFile) => {
    tables[table.name] = ref
  }
  for (const [table, byOwner] of sealing) {
    const rows = [...byOwner.values()].flat()
    if (history === undefined) {
      files.addSealedRows(
        paths.historyFile(table.name, day, publish, epoch),
        { table, rows, scope, codec: 'zstd' },
        place(table),
      )
      continue
    }
    const file = { table: historyTable(table), rows, scope, codec: 'zstd' } as const
    files.addSortedRows(paths.historyFile(table.name, day, publish, epoch, 0), file, place(table))
    if (table.listed !== undefined) spans[table.name] = spanOf(rows, table.listed.at)
  }
  return () => {
    if (sealing.size === 0) return undefined
    const entry = { publish, sealed_at: publishedAt, tables }
    return history === undefined ? entry : { ...entry, first: publish, level: 0, spans }
  }
}

/** When the oldest and the newest of some rows stand in lists. */
function spanOf(rows: readonly AnyRow[], at: string): readonly [number, number] {
  let [oldest, newest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const row of rows) {
    oldest = Math.min(oldest, row[at])
    newest = Math.max(newest, row[at])
  }
  return [oldest, newest]
}
