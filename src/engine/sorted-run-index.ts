import { readBloomFilter } from 'hyparquet/src/bloom.js'
import type { Table } from '../model/table.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import { type FileRef, fileMissing, unreadable } from './checked.ts'
import { ROW_GROUP_ROWS } from './parquet.ts'
import { type Footer, type Group, readFooter } from './parquet-read.ts'
import { schemaOf } from './parquet-schema.ts'
import { compareTuples, type KeyTuple, keyText } from './row-merge.ts'

export const FIRST_KEYS = 'servo.first_keys'
export const LAST_KEY = 'servo.last_key'

/** What is known of a run without reading its rows. */
export interface RunIndex {
  readonly footer: Footer
  /** The first key of every row group, in our order; Parquet's statistics keep another order and only 16 bytes. */
  readonly firstKeys: readonly KeyTuple[]
  readonly lastKey: KeyTuple | undefined
}

export async function readRunIndex(store: ObjectStore, table: Table, ref: FileRef): Promise<RunIndex> {
  const footer = readFooter(table, await readTail(store, table, ref), ref.path)
  return { footer, ...readKeys(footer, ref) }
}

function readKeys(footer: Footer, ref: FileRef): Omit<RunIndex, 'footer'> {
  try {
    const firstKeys: KeyTuple[] = JSON.parse(footer.metadata.get(FIRST_KEYS) ?? 'null')
    const lastKey: KeyTuple | null = JSON.parse(footer.metadata.get(LAST_KEY) ?? 'null')
    if (firstKeys.length === footer.groups.length) return { firstKeys, lastKey: lastKey ?? undefined }
  } catch {
    // Said below.
  }
  throw unreadable(ref.path, 'its footer does not tell the first key of every row group, as that of a run does')
}

/** About what hyparquet-writer spends on one column of one row group, seen from above. */
const FOOTER_BYTES_PER_CHUNK = 170
const FOOTER_END = 8

/** The end of a file, at least all of its footer. The size of a footer is only known at its end, so it is guessed first. */
async function readTail(store: ObjectStore, table: Table, ref: FileRef): Promise<Uint8Array> {
  const chunks = Math.ceil(ref.rows / ROW_GROUP_ROWS) * schemaOf(table).length
  const guess = Math.min(ref.bytes, 8192 + chunks * FOOTER_BYTES_PER_CHUNK)
  const tail = await readRange(store, ref, ref.bytes - guess, ref.bytes)
  if (tail.length < FOOTER_END) throw unreadable(ref.path, 'it is too short for a Parquet file')
  const needed =
    new DataView(tail.buffer, tail.byteOffset, tail.byteLength).getUint32(tail.length - FOOTER_END, true) + FOOTER_END
  if (needed <= tail.length || needed > ref.bytes) return tail
  return readRange(store, ref, ref.bytes - needed, ref.bytes)
}

/**
 * Part of a file. What is read so cannot be checked against the checksum of the whole; a length that is wrong and bytes
 * that cannot be decoded are noticed, changed digits in a value are not. `servo verify` and every merge read all of it.
 */
export async function readRange(store: ObjectStore, ref: FileRef, start: number, end: number): Promise<Uint8Array> {
  const bytes = await store.getRange(ref.path, start, end - start)
  if (bytes === undefined) throw fileMissing(ref)
  if (bytes.length !== end - start) throw unreadable(ref.path, `it ends at byte ${start + bytes.length}, not at ${ref.bytes}`)
  return bytes
}

/** The row group that would hold a key, or -1 when the key lies outside of the run. */
export function groupFor(index: RunIndex, key: KeyTuple): number {
  if (index.lastKey === undefined || compareTuples(key, index.lastKey) > 0) return -1
  let low = 0
  let high = index.firstKeys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareTuples(index.firstKeys[middle]!, key) <= 0) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** Parses the Bloom filter of a row group; undefined when it has none we understand, and then it cannot help. */
export function parseBloom(group: Group, bytes: Uint8Array, start: number): Uint32Array | undefined {
  const { bloom } = group
  if (bloom === undefined) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset + bloom.start - start, bloom.end - bloom.start)
  return readBloomFilter({ view, offset: 0 })?.blocks
}

/** What an index takes in memory, roughly: measured on runs of 40 row groups. */
export function weightOf(index: RunIndex): number {
  const chunks = index.footer.groups.reduce((sum, group) => sum + group.parquet.columns.length, 0)
  const keys = index.firstKeys.reduce((sum, key) => sum + keyText(key).length + 64, 0)
  return 4096 + chunks * 500 + keys * 2
}
