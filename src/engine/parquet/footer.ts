import type { ColumnMetaData, RowGroup } from 'hyparquet'
import { CompressionCodecs, ParquetTypes } from '../../parquet/inside-hyparquet.ts'

/*
 * A footer is mostly row groups, and those are mostly statistics, which we do not use. Reading all of it takes a hundred
 * milliseconds for a million rows, so this file reads the row groups, steps over what is not needed, and keeps numbers until
 * a group is requested; the rest is left to hyparquet.
 *
 * Thrift's compact protocol: a field has its type and the distance to the number of the one before in a byte, numbers are
 * varints, signed ones in zigzag, texts and lists come after their length.
 */
export interface SkimmedFooter {
  /** A footer without row groups. */
  readonly rest: Uint8Array
  readonly groups: readonly SkimmedGroup[]
}

/** Some bytes of a file. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** The column chunks of a file. All row groups have the same columns. */
interface Chunks {
  readonly columns: number
  /** The path of each column, as the first row group has it. */
  readonly names: string[][]
  /** The fields of each chunk that are numbers, by the number of the field. */
  readonly numbers: Float64Array
}

// Fields of a column chunk. A missing field is 0, which is never the place of a page: a file begins with a magic number.
const FILE_OFFSET = 0
const TYPE = 1
const PATH = 3
const CODEC = 4
const VALUES = 5
const UNPACKED_BYTES = 6
const BYTES = 7
const DATA_PAGE = 9
const DICTIONARY_PAGE = 11
const BLOOM = 14
const BLOOM_BYTES = 15
const FIELDS = 16

/** One row group, read on demand. */
export class SkimmedGroup {
  readonly rows: number
  readonly start: number
  readonly end: number
  readonly #chunks: Chunks
  readonly #first: number
  readonly #bytes: number

  constructor(chunks: Chunks, first: number, { rows, bytes }: { rows: number; bytes: number }) {
    this.#chunks = chunks
    this.#first = first
    this.#bytes = bytes
    this.rows = rows
    let [start, end] = [Number.POSITIVE_INFINITY, 0]
    for (let column = 0; column < chunks.columns; column++) {
      const from = this.#startOf(column)
      start = Math.min(start, from)
      end = Math.max(end, from + this.#number(column, BYTES))
    }
    this.start = start
    this.end = end
  }

  #number(column: number, field: number): number {
    return this.#chunks.numbers[(this.#first + column) * FIELDS + field] as number
  }

  #startOf(column: number): number {
    return this.#number(column, DICTIONARY_PAGE) || this.#number(column, DATA_PAGE)
  }

  /** Where a column is, and how its pages are compressed; undefined if there is none. Of a map, where its keys are. */
  chunk(name: string): (ByteRange & { readonly codec: ColumnMetaData['codec'] }) | undefined {
    const column = this.#chunks.names.findIndex(([first]) => first === name)
    if (column < 0) return undefined
    const start = this.#startOf(column)
    return { start, end: start + this.#number(column, BYTES), codec: CompressionCodecs[this.#number(column, CODEC)]! }
  }

  /** Where the Bloom filters of its columns are, in the order of the file. */
  get blooms(): readonly (ByteRange & { readonly column: string })[] {
    return this.#chunks.names.flatMap(([name], column) => {
      const [start, bytes] = [this.#number(column, BLOOM), this.#number(column, BLOOM_BYTES)]
      return start > 0 && name !== undefined ? [{ column: name, start, end: start + bytes }] : []
    })
  }

  /** The row group as hyparquet decodes it. */
  get parquet(): RowGroup {
    const long = (column: number, field: number): bigint => BigInt(this.#number(column, field))
    const columns = this.#chunks.names.map((path_in_schema, column) => ({
      file_offset: long(column, FILE_OFFSET),
      meta_data: {
        type: ParquetTypes[this.#number(column, TYPE)]!,
        codec: CompressionCodecs[this.#number(column, CODEC)]!,
        encodings: [],
        path_in_schema,
        num_values: long(column, VALUES),
        total_uncompressed_size: long(column, UNPACKED_BYTES),
        total_compressed_size: long(column, BYTES),
        data_page_offset: long(column, DATA_PAGE),
        ...(this.#number(column, DICTIONARY_PAGE) > 0 && { dictionary_page_offset: long(column, DICTIONARY_PAGE) }),
      },
    }))
    return { columns, total_byte_size: BigInt(this.#bytes), num_rows: BigInt(this.rows) }
  }
}

const TRUE = 1
const FALSE = 2
const BYTE = 3
const I32 = 5
const I64 = 6
const DOUBLE = 7
const BINARY = 8
const LIST = 9
const SET = 10
const STRUCT = 12
const EMPTY_LIST_OF_STRUCTS = STRUCT
/** After the footer come its length and the magic number. */
const END = 8
const ROW_GROUPS = 4

/** Reads the footer at the end of these bytes. */
export function skimFooter(tail: Uint8Array): SkimmedFooter {
  const view = new DataView(tail.buffer, tail.byteOffset, tail.byteLength)
  const length = view.getUint32(tail.length - END, true)
  if (length > tail.length - END) throw new Error(`its footer of ${length} bytes is not all there`)
  const start = tail.length - END - length
  const reader = new Reader(tail, start, tail.length - END)
  let groups: SkimmedGroup[] = []
  let from = start
  let to = start
  for (let field = reader.next(0); field !== 0; field = reader.next(field)) {
    if (field !== ROW_GROUPS) {
      reader.skip(reader.type)
      continue
    }
    from = reader.at
    groups = readGroups(reader)
    to = reader.at
  }
  const rest = new Uint8Array(length - (to - from) + 1 + END)
  rest.set(tail.subarray(start, from))
  rest[from - start] = EMPTY_LIST_OF_STRUCTS
  rest.set(tail.subarray(to), from - start + 1)
  new DataView(rest.buffer).setUint32(rest.length - END, rest.length - END, true)
  return { rest, groups }
}

function readGroups(reader: Reader): SkimmedGroup[] {
  const groups = new Array<SkimmedGroup>(reader.listSize())
  let chunks: Chunks | undefined
  for (let i = 0; i < groups.length; i++) {
    let [columns, bytes, rows] = [0, 0, 0]
    for (let field = reader.next(0); field !== 0; field = reader.next(field)) {
      if (field === 1) {
        columns = reader.listSize()
        chunks ??= { columns, names: [], numbers: new Float64Array(groups.length * columns * FIELDS) }
        for (let column = 0; column < columns; column++) readChunk(reader, chunks, (i * columns + column) * FIELDS)
      } else if (field === 2) bytes = reader.int()
      else if (field === 3) rows = reader.int()
      else reader.skip(reader.type)
    }
    if (chunks?.columns !== columns) throw new Error(`row group ${i} has ${columns} columns`)
    groups[i] = new SkimmedGroup(chunks, i * columns, { rows, bytes })
  }
  return groups
}

function readChunk(reader: Reader, chunks: Chunks, base: number): void {
  for (let field = reader.next(0); field !== 0; field = reader.next(field)) {
    if (field === 2) chunks.numbers[base + FILE_OFFSET] = reader.int()
    else if (field === 3) readMeta(reader, chunks, base)
    else reader.skip(reader.type)
  }
}

function readMeta(reader: Reader, { columns, names, numbers }: Chunks, base: number): void {
  for (let field = reader.next(0); field !== 0; field = reader.next(field)) {
    if ((reader.type === I32 || reader.type === I64) && field < FIELDS) numbers[base + field] = reader.int()
    else if (field === PATH && names.length < columns) names.push(reader.texts())
    else reader.skip(reader.type)
  }
}

const decoder = new TextDecoder()

class Reader {
  at: number
  /** The type of the field that comes next. */
  type = 0
  readonly #bytes: Uint8Array
  readonly #end: number

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.#bytes = bytes
    this.at = start
    this.#end = end
  }

  /** Goes to the next field of a struct; 0 after the last one. */
  next(field: number): number {
    const head = this.#byte()
    if (head === 0) return 0
    this.type = head & 15
    return head >>> 4 === 0 ? this.int() : field + (head >>> 4)
  }

  /** Offsets in files are far below what a number can hold. */
  int(): number {
    const zigzag = this.#varint()
    return zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2
  }

  texts(): string[] {
    return Array.from({ length: this.listSize() }, () => {
      const length = this.#varint()
      this.at += length
      return decoder.decode(this.#bytes.subarray(this.at - length, this.at))
    })
  }

  /** The size of a list, whose items come next. */
  listSize(): number {
    const head = this.#byte()
    this.type = head & 15
    return head >>> 4 === 15 ? this.#varint() : head >>> 4
  }

  skip(type: number): void {
    if (type === TRUE || type === FALSE) return
    if (type === BYTE) this.at += 1
    else if (type < DOUBLE) this.#varint()
    else if (type === DOUBLE) this.at += 8
    else if (type === BINARY) {
      const length = this.#varint()
      this.at += length
    } else if (type === LIST || type === SET) {
      const size = this.listSize()
      const itemType = this.type
      // In a list, a boolean takes a byte.
      if (itemType === TRUE || itemType === FALSE) this.at += size
      else for (let i = 0; i < size; i++) this.skip(itemType)
    } else if (type === STRUCT) for (let field = this.next(0); field !== 0; field = this.next(field)) this.skip(this.type)
    else throw new Error(`its footer has something of type ${type}`)
  }

  #varint(): number {
    const first = this.#bytes[this.at] as number
    if (first < 128 && this.at < this.#end) {
      this.at++
      return first
    }
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#byte()
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
  }

  #byte(): number {
    if (this.at >= this.#end) throw new Error('its footer ends too early')
    return this.#bytes[this.at++] as number
  }
}
