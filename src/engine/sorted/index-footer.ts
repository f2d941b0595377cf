import { crc32 } from 'node:zlib'
import { countWhile } from '../../lib/collections/binary-search.ts'
import { readBloomBlocks } from '../../parquet/inside-hyparquet.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { SortedFileRef } from '../files/file-ref.ts'
import { type FileRef, fileMissing, unreadable } from '../files/file-ref.ts'
import { compareTuples, type KeyTuple, keyText } from '../fold/row-merge.ts'
import { type BlockRows, blockRows } from '../parquet/block-rows.ts'
import { type Footer, readFooter } from '../parquet/read.ts'
import { type FileShape, schemaOf } from '../parquet/schema.ts'
import { groupRowsOf } from '../parquet/write.ts'
import { mayContain } from './bloom-filter.ts'

/**
 * The index that a sorted file has in its footer, as JSON. Parquet's statistics cannot be used to find a key: they keep another
 * order than ours, and 16 bytes of it. And a part of a file cannot be checked against the SHA-256 of the whole, so the
 * parts that are read by themselves have a CRC each: a flipped bit must not become the answer "not there".
 */
export interface SortedFileDescription {
  readonly last_key: KeyTuple | null
  readonly groups: readonly GroupEntry[]
}

export interface GroupEntry {
  readonly first_key: KeyTuple
  readonly crc32: number
  /** The CRC of the Bloom filter of each part of the key. */
  readonly filter_crc32: readonly number[]
  readonly digest?: Digest
  /** Of a history file that lists are made from, by column. */
  readonly values?: GroupValues
}

/** The values of a column in a row group: all of them if they are few, else a Bloom filter in base64. */
export type GroupValues = Readonly<Record<string, readonly string[] | string>>

/** The index entry of a row group. */
export interface Digest {
  readonly rows: number
  /** Absent in files of earlier versions. */
  readonly last_key?: KeyTuple
  /** By column: how many rows have no value, and the text that all others have, if it is the same. */
  readonly columns: Readonly<Record<string, { readonly nulls: number; readonly only?: string }>>
}

/** The name of this JSON in the footer. Format 1 calls a sorted file a run. */
const DESCRIPTION = 'servo.run'

export function describeSortedFile({ last_key, groups }: SortedFileDescription): Record<string, string> {
  return { [DESCRIPTION]: JSON.stringify({ last_key, groups }) }
}

/** The index of a sorted file: everything known without reading its rows. */
export interface SortedFileIndex extends SortedFileDescription {
  readonly ref: FileRef
  readonly footer: Footer
}

export async function readSortedFileIndex(store: ObjectStore, table: FileShape, ref: SortedFileRef): Promise<SortedFileIndex> {
  const tail = await readTail(store, table, ref)
  if (crc32(footerIn(tail)) !== ref.footer_crc32) throw damagedIndex(ref, 'its footer')
  const footer = readFooter(table, tail, ref.path)
  const text = footer.metadata.get(DESCRIPTION)
  if (text === undefined) throw unreadable(ref.path, 'it is not a sorted file: its footer has no keys')
  return { ref, footer, ...(JSON.parse(text) as SortedFileDescription) }
}

/** An upper estimate of what hyparquet-writer spends on one column of one row group. */
const FOOTER_BYTES_PER_CHUNK = 110
const FOOTER_END = 8

/** The end of a file with at least all of its footer. If the reference does not have the footer's size, it is guessed first. */
async function readTail(store: ObjectStore, table: FileShape, ref: SortedFileRef): Promise<Uint8Array> {
  const chunks = Math.ceil(ref.rows / groupRowsOf(table)) * schemaOf(table).length
  const guess = Math.min(ref.bytes, ref.footer_bytes ?? 8192 + chunks * FOOTER_BYTES_PER_CHUNK)
  const tail = await readRange(store, ref, ref.bytes - guess, ref.bytes)
  if (tail.length < FOOTER_END) throw unreadable(ref.path, 'it is too short for a Parquet file')
  const needed = viewOf(tail).getUint32(tail.length - FOOTER_END, true) + FOOTER_END
  if (needed <= tail.length || needed > ref.bytes) return tail
  return readRange(store, ref, ref.bytes - needed, ref.bytes)
}

export function sortedFileRef(file: FileRef, bytes: Uint8Array, level: number): SortedFileRef {
  const footer = footerIn(bytes)
  return { ...file, level, footer_crc32: crc32(footer), footer_bytes: footer.length }
}

/** The footer, given a file or the end of one. */
function footerIn(file: Uint8Array): Uint8Array {
  const length = viewOf(file).getUint32(file.length - FOOTER_END, true) + FOOTER_END
  return file.subarray(Math.max(0, file.length - length))
}

/** A range of a file. Throws if any of it is missing. */
export async function readRange(store: ObjectStore, ref: FileRef, start: number, end: number): Promise<Uint8Array> {
  const bytes = await store.getRange(ref.path, start, end - start)
  if (bytes === undefined) throw fileMissing(ref)
  if (bytes.length !== end - start) throw unreadable(ref.path, `it ends at byte ${start + bytes.length}, not at ${ref.bytes}`)
  return bytes
}

/** The row group that would hold a key, or -1 when the key lies outside of the file. */
export function groupFor({ last_key, groups }: SortedFileIndex, key: KeyTuple): number {
  if (last_key === null || compareTuples(key, last_key) > 0) return -1
  return countWhile(groups.length, (at) => compareTuples(groups[at]!.first_key, key) <= 0) - 1
}

/** The Bloom filters of one row group, by part of the key. */
export type KeyFilters = readonly Uint32Array[]

/** Where the filters of a row group are: side by side, so this is one range. */
export function filterRange({ footer, ref }: SortedFileIndex, group: number): { start: number; end: number } {
  const { blooms } = footer.groups[group]!
  if (blooms.length !== footer.table.key.length) throw damagedIndex(ref, 'its footer')
  return { start: blooms[0]!.start, end: blooms.at(-1)!.end }
}

/** Parses the filters of a row group out of bytes that begin at `start`. */
export function parseFilters(
  { footer, groups, ref }: SortedFileIndex,
  group: number,
  bytes: Uint8Array,
  start: number,
): KeyFilters {
  return footer.table.key.map((name, i) => {
    const place = footer.groups[group]!.blooms.find((bloom) => bloom.column === name)
    const filter = place && readBloomBlocks(bytes.subarray(place.start - start, place.end - start))
    if (filter === undefined || crc32(filter) !== groups[group]!.filter_crc32[i])
      throw damagedIndex(ref, `the Bloom filter of ${name}`)
    return filter
  })
}

/** False if a key is certainly not in the row group of these filters. */
export function maybeIn(filters: KeyFilters, key: KeyTuple): boolean {
  return filters.every((filter, i) => mayContain(filter, key[i]!))
}

/** False if no row of the group has this value in the column. */
export function mayHave({ values }: GroupEntry, column: string, value: string): boolean {
  const known = values?.[column]
  if (known === undefined) return true
  if (typeof known !== 'string') return known.includes(value)
  const bytes = Buffer.from(known, 'base64')
  // A copy, because a Buffer may begin anywhere, and words must not.
  return mayContain(new Uint32Array(new Uint8Array(bytes).buffer), value)
}

/** A row group in one range read, with everything ready or only the key. */
export async function readGroup(
  store: ObjectStore,
  { footer, groups, ref }: SortedFileIndex,
  at: number,
  decode = blockRows,
): Promise<BlockRows> {
  const group = footer.groups[at]!
  const bytes = await readRange(store, ref, group.start, group.end)
  if (crc32(bytes) !== groups[at]!.crc32) throw damagedIndex(ref, `row group ${at}`)
  return await decode(footer, group, { start: group.start, bytes })
}

/** The approximate size of an index in memory. */
export function weightOf({ footer, groups }: SortedFileIndex): number {
  const textOf = ({ first_key, digest }: GroupEntry): string => keyText([...first_key, ...(digest?.last_key ?? [])])
  const keys = groups.reduce((sum, group) => sum + 2 * textOf(group).length + 400, 0)
  return 4096 + footer.groups.length * schemaOf(footer.table).length * 128 + keys
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function damagedIndex(ref: FileRef, part: string): Error {
  return unreadable(ref.path, `${part} is damaged`)
}
