/*
 * The undocumented internals of hyparquet that we use: all of them are here, so that an upgrade breaks one file. Its reader turns
 * every value into part of a row. We read pages by column, fifty times as fast, and take from hyparquet the pieces that are tricky but
 * not slow: page headers, levels and codes, differences too large for numbers, Bloom filters.
 */
import type { DecodedArray } from 'hyparquet'
import { hashParquetValue, readBloomFilter } from 'hyparquet/src/bloom.js'
import { parquetHeader } from 'hyparquet/src/column.js'
import { deltaBinaryUnpack } from 'hyparquet/src/delta.js'
import { readRleBitPackedHybrid } from 'hyparquet/src/encoding.js'

export { CompressionCodecs, ParquetTypes } from 'hyparquet/src/constants.js'

/** A position in some bytes; reading moves it on. */
export interface ByteReader {
  readonly view: DataView
  offset: number
}

export function readerOf(bytes: Uint8Array, offset = 0): ByteReader {
  return { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset }
}

/** Reads the header of a page, and leaves the reader at the first byte of the page. */
export const readPageHeader = (reader: ByteReader) => parquetHeader(reader)

/** Small numbers of `width` bits, run-length encoded or bit-packed: as many as `into` takes. */
export function readPackedNumbers<T extends DecodedArray>(bytes: Uint8Array, width: number, into: T): T {
  // Without a length, hyparquet would expect one before the numbers.
  if (bytes.length > 0) readRleBitPackedHybrid(readerOf(bytes), width, into, bytes.length)
  return into
}

/** Whole numbers of 64 bits, written as differences. */
export function readDeltas(bytes: Uint8Array, into: BigInt64Array): BigInt64Array {
  deltaBinaryUnpack(readerOf(bytes), into.length, into)
  return into
}

/** The hash by which hyparquet looks a value up in a Bloom filter: the tests compare ours with it. */
export const bloomHashOfText = (text: string): bigint | undefined =>
  hashParquetValue(text, { name: 'c', type: 'BYTE_ARRAY', converted_type: 'UTF8' })

export const bloomHashOfInteger = (number: number): bigint | undefined => hashParquetValue(number, { name: 'c', type: 'INT32' })

/** The blocks of a Bloom filter; undefined if its kind is unknown or it is damaged. */
export function readBloomBlocks(bytes: Uint8Array): Uint32Array | undefined {
  try {
    return readBloomFilter(readerOf(bytes))?.blocks
  } catch {
    return undefined
  }
}
