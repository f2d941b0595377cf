/*
 * What we use of the inside of hyparquet, which its documentation does not promise: all of it is here, so that an upgrade breaks
 * one file. Its own reader makes a row of every value; we read pages by column, fifty times as fast, and need the pieces below
 * that are tricky and not slow: headers of pages, levels and codes, differences too large for numbers, Bloom filters.
 */
import type { DecodedArray } from 'hyparquet'
import { readBloomFilter } from 'hyparquet/src/bloom.js'
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

/** The header of a page, after which its bytes begin. */
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

/** The blocks of a Bloom filter; undefined if its kind is unknown or it is damaged. */
export function readBloomBlocks(bytes: Uint8Array): Uint32Array | undefined {
  try {
    return readBloomFilter(readerOf(bytes))?.blocks
  } catch {
    return undefined
  }
}
