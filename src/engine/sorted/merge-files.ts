import { createHash } from 'node:crypto'
import { setImmediate as pause } from 'node:timers/promises'
import type { AnyRow, Table } from '../../model/table.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { checksumMismatch, type SortedFileRef, unreadable } from '../files/file-ref.ts'
import { compareKeys, keyOf, keyText, mergeRows, sortedByKey } from '../fold/row-merge.ts'
import { decodeGroup } from '../parquet/read.ts'
import type { Scope } from '../paths.ts'
import { readRange, readSortedFileIndex } from './index-footer.ts'
import { sortedFileWriter } from './write-file.ts'

export interface MergeOptions {
  /** Rows for which this is false are left out, for retention. It is called with merged rows. */
  readonly keep?: (row: AnyRow) => boolean
}

export interface MergedFile {
  readonly bytes: Uint8Array
  readonly rows: number
}

/**
 * Merges several sorted files, and rows in memory in any order, into one sorted file. Reads row group by row group, and lets others have their turn after
 * each: memory holds two row groups of every sorted file, and the file that comes out. The same rows give the same bytes, however they were spread.
 */
export async function mergeSortedFiles(
  store: ObjectStore,
  table: Table,
  scope: Scope,
  refs: readonly SortedFileRef[],
  rows: Iterable<AnyRow> = [],
  options: MergeOptions = {},
): Promise<MergedFile> {
  const writer = sortedFileWriter(table, scope)
  const cursors = refs.map((ref) => new Cursor(scanBatches(store, table, ref)))
  const own = sortedByKey(table, rows)
  cursors.push(new Cursor(inMemory(own)))
  await Promise.all(cursors.map((cursor) => cursor.refill()))
  const equal: Cursor[] = []
  while (true) {
    equal.length = 0
    for (const cursor of cursors) {
      if (cursor.row === undefined) continue
      const order = equal.length === 0 ? 0 : compareKeys(table, cursor.row, equal[0]!.row!)
      if (order < 0) equal.length = 0
      if (order <= 0) equal.push(cursor)
    }
    if (equal.length === 0) break
    let merged: AnyRow | undefined
    for (const cursor of equal) {
      merged = merged === undefined ? cursor.row! : mergeRows(table, merged, cursor.row!)
      if (cursor.step()) continue
      await cursor.refill()
      // Files that are read from memory are always there, and a merge of a million rows would keep everybody else waiting for seconds.
      await pause()
    }
    if (options.keep === undefined || options.keep(merged!)) writer.write([merged!])
  }
  return { bytes: writer.finish(), rows: writer.rows }
}

/** A place in a sorted file. Stepping is synchronous within a row group: a promise for every row would cost more than the row. */
class Cursor {
  row: AnyRow | undefined
  #batch: readonly AnyRow[] = []
  #at = 0
  readonly #batches: AsyncIterator<readonly AnyRow[]>

  constructor(batches: AsyncIterator<readonly AnyRow[]>) {
    this.#batches = batches
  }

  step(): boolean {
    this.row = this.#batch[++this.#at]
    return this.row !== undefined
  }

  async refill(): Promise<void> {
    const next = await this.#batches.next()
    this.#batch = next.done === true ? [] : next.value
    this.#at = 0
    this.row = this.#batch[0]
  }
}

async function* inMemory(rows: readonly AnyRow[]): AsyncGenerator<readonly AnyRow[]> {
  if (rows.length > 0) yield rows
}

/** The rows of a sorted file in key order. See `scanBatches`. */
export async function* scanSortedFile(store: ObjectStore, table: Table, ref: SortedFileRef): AsyncGenerator<AnyRow> {
  for await (const batch of scanBatches(store, table, ref)) yield* batch
}

/**
 * The rows of a sorted file in key order, a row group at a time, while the next one is fetched. Every byte of the file goes through
 * the checksum on the way, and a wrong checksum throws after the last row. So do not publish anything made of these rows before the
 * scan has ended.
 */
async function* scanBatches(store: ObjectStore, table: Table, ref: SortedFileRef): AsyncGenerator<AnyRow[]> {
  const { footer } = await readSortedFileIndex(store, table, ref)
  const checksum = createHash('sha256')
  // Row groups follow each other from the start of the file; after the last come the filters and the footer.
  const ends = [...footer.groups.map((group) => group.end), ref.bytes]
  let start = 0
  let rows = 0
  let last: AnyRow | undefined
  let next = fetch(0)
  for (let i = 0; i < ends.length; i++) {
    const bytes = await next
    if (i + 1 < ends.length) next = fetch(i + 1)
    checksum.update(bytes)
    const group = footer.groups[i]
    if (group !== undefined) {
      const batch = await decodeGroup(footer, group, { start, bytes })
      for (const row of batch) {
        if (last !== undefined && compareKeys(table, last, row) >= 0) {
          throw unreadable(
            ref.path,
            `its rows are out of order: ${keyText(keyOf(table, row))} comes after ${keyText(keyOf(table, last))}`,
          )
        }
        last = row
      }
      rows += batch.length
      start = group.end
      yield batch
    }
  }
  const actual = checksum.digest('hex')
  if (actual !== ref.sha256) throw checksumMismatch(ref, `its SHA-256 is ${actual} instead of ${ref.sha256}`)
  if (rows !== ref.rows) throw unreadable(ref.path, `it has ${rows} rows, but the manifest has ${ref.rows}`)

  function fetch(i: number): Promise<Uint8Array> {
    const from = i === 0 ? 0 : ends[i - 1]!
    const bytes = readRange(store, ref, from, ends[i]!)
    // The consumer may have left, or another file may have failed first. The error is thrown where the promise is awaited.
    bytes.catch(() => {})
    return bytes
  }
}
