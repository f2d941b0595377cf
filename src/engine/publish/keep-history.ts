import { utcDay } from '../../lib/time.ts'
import { getChecked } from '../files/file-ref.ts'
import { historyTable } from '../history/shape.ts'
import type { HistoryEntry, HistoryFile, HistoryRule, Manifest } from '../manifest/manifest.ts'
import { appendEntry } from '../manifest/page-list.ts'
import { Paths } from '../paths.ts'
import type { DraftInput } from './draft-input.ts'
import { shapeOf } from './file-copy.ts'
import type { FileSet } from './file-set.ts'

/**
 * `full_rows` bounds what a merge reads and holds: some seconds of the encoder's thread and some dozen megabytes. A workspace that makes a
 * million one-task runs a day has some twenty closed entries of that day. `per_level` is twice that of sorted files: open entries cost
 * readers little, because the index says which one has a run, and writing rows again costs as much as writing them did.
 */
export const historyRule: HistoryRule = { full_rows: 200_000, per_level: 16 }

type KeptHistory = Pick<Manifest, 'history' | 'open_history' | 'history_newest'>

/**
 * History after a base that sealed something, or nothing. Entries of a day are merged in levels, as sorted files are. When they
 * are full, or their day is over, all of them become one entry that is never touched again and leaves the manifest for the list. So the
 * rows of a run are in one file per table, there are few files however many publishes there were, and each row is written a few times
 * in its life. Only what the ledger and the recorded order say decides: a replay merges the same.
 */
export async function keepHistory(input: DraftInput, files: FileSet, sealed: HistoryEntry | undefined): Promise<KeptHistory> {
  const kept = new Keeping(input, files)
  if (input.history === undefined) {
    if (sealed !== undefined) kept.append(sealed)
    return kept.history
  }
  const rule = input.history
  const today = utcDay(input.nowMs)
  if (kept.open.some((entry) => dayOf(entry) !== today)) await kept.close()
  if (sealed === undefined) return kept.history
  // A large seal is not written again for the sake of small ones.
  if (rowsOf([sealed]) >= rule.full_rows) await kept.close()
  kept.open.push(sealed)
  if (rowsOf(kept.open) >= rule.full_rows) await kept.close()
  else await kept.mergeLevels(rule)
  return kept.history
}

const dayOf = ({ sealed_at }: HistoryEntry): string => sealed_at.slice(0, 10)

const rowsOf = (entries: readonly HistoryEntry[]): number =>
  entries.reduce((sum, { tables }) => sum + Object.values(tables).reduce((rows, file) => rows + file.rows, 0), 0)

class Keeping {
  open: HistoryEntry[]
  readonly #input: DraftInput
  readonly #files: FileSet
  readonly #paths: Paths
  #list: Manifest['history']
  #newest: Readonly<Record<string, number>>

  constructor(input: DraftInput, files: FileSet) {
    const { manifest, nowMs } = input
    this.#input = input
    this.#files = files
    this.#paths = new Paths(input.scope)
    this.#list = manifest.history
    this.open = [...(manifest.open_history ?? [])]
    // What earlier versions sealed does not say when its rows were requested; not later than now.
    const isEmpty = manifest.history.levels.every((entries) => entries.length === 0)
    const listed = isEmpty ? [] : [...input.state.hotTables.keys()].filter((table) => table.listed !== undefined)
    this.#newest = manifest.history_newest ?? Object.fromEntries(listed.map((table) => [table.name, nowMs]))
  }

  get history(): KeptHistory {
    if (this.#input.history === undefined) return { history: this.#list }
    return { history: this.#list, open_history: this.open, history_newest: this.#newest }
  }

  append(entry: HistoryEntry): void {
    const { manifest, epoch } = this.#input
    // Named by this publish, not by the last one that the entry has: garbage collection spares what a later publish may be about to name.
    const pagePath = (_: number, level: number): string => this.#paths.page('history', manifest.publish + 1, epoch, level)
    const { list, pages } = appendEntry(this.#list, entry, pagePath)
    this.#list = list
    for (const page of pages) this.#files.list.push(page)
  }

  /** Makes one entry of all that are open. */
  async close(): Promise<void> {
    if (this.open.length === 0) return
    const entry = await this.#merge(this.open)
    this.append({ ...entry, newest_before: this.#newest })
    const newest = Object.entries(entry.spans ?? {}).map(([table, [, to]]) => [table, Math.max(to, this.#newest[table] ?? to)])
    this.#newest = { ...this.#newest, ...Object.fromEntries(newest) }
    this.open = []
  }

  /** Makes one entry of each full level, unless they have so many rows that all are closed soon. */
  async mergeLevels({ per_level, full_rows }: HistoryRule): Promise<void> {
    for (let level = 0; ; level++) {
      const full = this.open.filter((entry) => entry.level === level)
      if (full.length < per_level || rowsOf(full) >= full_rows / 2) return
      const merged = await this.#merge(full)
      // Levels fall from the oldest entry to the newest, so these stand together.
      this.open.splice(this.open.indexOf(full[0]!), full.length, merged)
    }
  }

  async #merge(entries: readonly HistoryEntry[]): Promise<HistoryEntry> {
    const [oldest, newest] = [entries[0]!, entries.at(-1)!]
    if (entries.length === 1) return newest
    const level = Math.max(...entries.map((entry) => entry.level ?? 0)) + 1
    const tables: Record<string, HistoryFile> = {}
    for (const name of new Set(entries.flatMap((entry) => Object.keys(entry.tables)))) {
      const parts = entries.flatMap((entry) => entry.tables[name] ?? [])
      tables[name] = parts.length === 1 ? parts[0]! : await this.#mergeFiles(name, parts, dayOf(newest), level)
    }
    const { publish, sealed_at } = newest
    return { publish, first: oldest.first ?? oldest.publish, sealed_at, level, tables, spans: spansOf(entries) }
  }

  async #mergeFiles(name: string, parts: readonly HistoryFile[], day: string, level: number): Promise<HistoryFile> {
    const { store, scope, state, manifest, epoch, encoder } = this.#input
    const table = shapeOf(historyTable(state.tableNamed(name)))
    const read = this.#files.over(store)
    const files = await Promise.all(parts.map(async (ref) => ({ path: ref.path, bytes: await getChecked(read, ref) })))
    const rows = parts.reduce((sum, part) => sum + part.rows, 0)
    const bytes = await encoder.merge({ table, scope, files, rows })
    for (const { path } of parts) this.#files.discard(path)
    const path = this.#paths.historyFile(name, day, manifest.publish + 1, epoch, level)
    return this.#files.addSortedFile(path, bytes, rows, level)
  }
}

function spansOf(entries: readonly HistoryEntry[]): Record<string, readonly [number, number]> {
  const spans: Record<string, readonly [number, number]> = {}
  for (const entry of entries) {
    for (const [table, [from, to]] of Object.entries(entry.spans ?? {})) {
      const [oldest, newest] = spans[table] ?? [from, to]
      spans[table] = [Math.min(oldest, from), Math.max(newest, to)]
    }
  }
  return spans
}
