import { assert } from '../../lib/assert.ts'
import { toMs } from '../../lib/time.ts'
import type { AnyRow, Table } from '../../model/table.ts'
import type { SortedFileRef } from '../files/file-ref.ts'
import { firstOfKey } from '../fold/row-merge.ts'
import { type HistoryEntry, isSortedFile, type Manifest } from '../manifest/manifest.ts'
import { mayHave } from '../sorted/index-footer.ts'
import { type HistoryReader, liveFile, newestBefore } from './history-reader.ts'
import type { SealedRows } from './sealed-rows.ts'

/** A place in a list that has the newest first. Of two rows of one moment, the one with the larger id comes first. */
export interface ListPlace {
  readonly at: number
  readonly id: string
}

export interface ListQuery {
  readonly limit: number
  /** Only rows that come after this place. */
  readonly after?: ListPlace | undefined
  /** Only rows of this moment or later. */
  readonly since?: number | undefined
  /** Only rows before this moment. */
  readonly until?: number | undefined
  /** Only rows with this text in a column, or in the list of texts that it has. Only columns that the table declares for it. */
  readonly filters?: Readonly<Record<string, string>>
}

/** True if the other place comes later in the list. */
export const comesAfter = (place: ListPlace, other: ListPlace): boolean =>
  other.at < place.at || (other.at === place.at && other.id < place.id)

/** True if a row is asked for, wherever it comes from. `columnOf` gives a column of the row. */
export function isAsked(query: ListQuery, place: ListPlace, columnOf: (column: string) => unknown): boolean {
  const { after, since, until, filters = {} } = query
  if (since !== undefined && place.at < since) return false
  if (until !== undefined && place.at >= until) return false
  if (after !== undefined && !comesAfter(after, place)) return false
  return Object.entries(filters).every(([column, wanted]) => {
    const value = columnOf(column)
    return Array.isArray(value) ? value.includes(wanted) : value === wanted
  })
}

/** The newest rows that are asked for. Goes from the newest entries to older ones until none can hold a newer row. */
export async function listHistory(
  reader: HistoryReader,
  manifest: Manifest,
  sealing: SealedRows,
  table: Table,
  query: ListQuery,
): Promise<AnyRow[]> {
  const listing = new Listing(reader, table, query)
  for (const rows of sealing.get(table)?.values() ?? []) listing.addRows(rows)
  const open = [...(manifest.open_history ?? [])].sort((a, b) => listing.newestIn(b) - listing.newestIn(a))
  for (const entry of open) await listing.add(manifest, entry)
  const inClosed = manifest.history_newest?.[table.name] ?? Number.POSITIVE_INFINITY
  const isWanted = (last: HistoryEntry | undefined): boolean =>
    listing.wants(last === undefined ? inClosed : newestBefore(last, table)) &&
    (last === undefined || last.publish >= (manifest.dropped[table.name] ?? 0))
  for await (const entry of reader.entriesBackwards(manifest, isWanted)) await listing.add(manifest, entry)
  return await listing.rows()
}

interface Found extends ListPlace {
  row(): AnyRow | Promise<AnyRow>
}

class Listing {
  readonly #reader: HistoryReader
  readonly #table: Table
  readonly #query: ListQuery
  readonly #at: string
  readonly #id: string
  #found: Found[] = []

  constructor(reader: HistoryReader, table: Table, query: ListQuery) {
    assert(table.listed !== undefined, `${table.name} is not listed`)
    this.#reader = reader
    this.#table = table
    this.#query = query
    this.#at = table.listed.at
    this.#id = firstOfKey(table)
  }

  rows(): Promise<AnyRow[]> {
    return Promise.all(this.#found.map((found) => found.row()))
  }

  /** When the newest row of an entry stands in the list, at most. */
  newestIn({ spans, sealed_at, first }: HistoryEntry): number {
    const span = spans?.[this.#table.name]
    if (span !== undefined) return span[1]
    // An entry of earlier versions does not say; others have no row of this table.
    return first === undefined ? toMs(sealed_at) : Number.NEGATIVE_INFINITY
  }

  /** False if rows of this moment and earlier ones cannot be in the answer. */
  wants(newest: number): boolean {
    const { since, limit } = this.#query
    if (since !== undefined && newest < since) return false
    const last = this.#found[limit - 1]
    return last === undefined || newest >= last.at
  }

  /** False if rows of this moment and later ones are not asked for. */
  #wantsFrom(oldest: number): boolean {
    const { until, after } = this.#query
    return (until === undefined || oldest < until) && (after === undefined || oldest <= after.at)
  }

  async add(manifest: Manifest, entry: HistoryEntry): Promise<void> {
    const file = liveFile(manifest, entry, this.#table)
    if (file === undefined || !this.wants(this.newestIn(entry))) return
    const span = entry.spans?.[this.#table.name]
    if (span !== undefined && !this.#wantsFrom(span[0])) return
    if (isSortedFile(file)) await this.#addFile(file)
    else this.addRows(await this.#reader.plainRows(this.#table, file))
  }

  addRows(rows: readonly AnyRow[]): void {
    const found: Found[] = []
    for (const row of rows) {
      const place = { at: row[this.#at], id: row[this.#id] }
      if (isAsked(this.#query, place, (column) => row[column])) found.push({ ...place, row: () => row })
    }
    this.#keep(found)
  }

  /** Row groups are in the order of the list, so the last ones come first. */
  async #addFile(file: SortedFileRef): Promise<void> {
    const index = await this.#reader.index(this.#table, file)
    const { groups, last_key } = index
    const filters = Object.entries(this.#query.filters ?? {})
    for (let at = groups.length - 1; at >= 0; at--) {
      const group = groups[at]!
      const newest = (groups[at + 1]?.first_key ?? last_key)?.[0]
      if (!this.wants(Number(newest))) return
      if (!this.#wantsFrom(Number(group.first_key[0]))) continue
      if (!filters.every(([column, value]) => mayHave(group, column, value))) continue
      const block = await this.#reader.group(index, at)
      await block.ready(filters.map(([column]) => column))
      const readRow = async (row: number): Promise<AnyRow> => {
        await block.ready()
        return block.row(row)
      }
      const found: Found[] = []
      for (let row = block.rows - 1; row >= 0 && found.length < this.#query.limit; row--) {
        const [moment, id] = block.key(row)
        const place = { at: Number(moment), id: String(id) }
        if (isAsked(this.#query, place, (column) => block.cell(column, row))) found.push({ ...place, row: () => readRow(row) })
      }
      this.#keep(found)
    }
  }

  #keep(found: readonly Found[]): void {
    if (found.length === 0) return
    this.#found = [...this.#found, ...found].sort((a, b) => (comesAfter(a, b) ? -1 : 1)).slice(0, this.#query.limit)
  }
}
