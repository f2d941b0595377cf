import { brotliDecompressSync, constants, gunzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

// zstd's own default. A fixed level, because equal rows must give equal bytes; another zstd release may still differ.
const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: 3 } }

/** The codecs that the writer compresses pages with, besides its own Snappy. */
export const compressors = { ZSTD: (page: Uint8Array): Uint8Array => zstdCompressSync(page, ZSTD) }

const atMost = (length: number) => ({ maxOutputLength: Math.max(1, length) })

/** The codecs that the reader knows, besides its own Snappy: other programs write files too. */
export const decompressors = {
  ZSTD: (page: Uint8Array, length: number): Uint8Array => zstdDecompressSync(page, atMost(length)),
  GZIP: (page: Uint8Array, length: number): Uint8Array => gunzipSync(page, atMost(length)),
  BROTLI: (page: Uint8Array, length: number): Uint8Array => brotliDecompressSync(page, atMost(length)),
}

// hyparquet's own decoder drops a byte order mark at the beginning of a text.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Text as it was written. */
export const textOf = (bytes: Uint8Array): string => decoder.decode(bytes)

const SURROGATE = /[\uD800-\uDFFF]/

/**
 * How Parquet can store a text. `astral`: it has characters beyond U+FFFF. The writer takes the smallest and largest text by UTF-16 code
 * unit and readers take them for UTF-8 order, so that for a column with such text they are wrong and must not be written. `broken`: it
 * has half a surrogate pair, which UTF-8 cannot hold.
 */
export function kindOfText(text: string): 'plain' | 'astral' | 'broken' {
  if (!SURROGATE.test(text)) return 'plain'
  return text.isWellFormed() ? 'astral' : 'broken'
}
