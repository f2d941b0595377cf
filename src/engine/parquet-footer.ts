import type { ColumnMetaData, RowGroup } from 'hyparquet'
import { CompressionCodecs, ParquetTypes } from 'hyparquet/src/constants.js'

/*
 * A footer is mostly row groups, and those are mostly statistics, which are for others. Reading all of it takes a hundred
 * milliseconds for a million rows, so row groups are read here, stepping over what is not needed; the rest is left to hyparquet.
 *
 * Thrift's compact protocol: a field has its type and the distance to the number of the one before in a byte, numbers are
 * varints, signed ones in zigzag, texts and lists come after their length.
 */
type Meta = Omit<ColumnMetaData, 'encodings' | 'statistics'> & { readonly encodings: [] }

export interface SkimmedFooter {
  /** A footer without row groups. */
  readonly rest: Uint8Array
  /** Undefined for those that nobody wanted. */
  readonly rowGroups: readonly (RowGroup | undefined)[]
}

const TRUE = 1
const FALSE = 2
const BYTE = 3
const DOUBLE = 7
const BINARY = 8
const LIST = 9
const SET = 10
const STRUCT = 12
const EMPTY_LIST_OF_STRUCTS = STRUCT
/** After the footer come its length and the magic number. */
const END = 8
const ROW_GROUPS = 4

/** Reads the footer at the end of these bytes, with all row groups or some. */
export function skimFooter(tail: Uint8Array, isWanted: (group: number) => boolean = () => true): SkimmedFooter {
  const view = new DataView(tail.buffer, tail.byteOffset, tail.byteLength)
  const length = view.getUint32(tail.length - END, true)
  if (length > tail.length - END) throw new Error(`its footer of ${length} bytes is not all there`)
  const start = tail.length - END - length
  const reader = new Reader(tail, start, tail.length - END)
  let rowGroups: (RowGroup | undefined)[] = []
  let from = start
  let to = start
  reader.fields((field, type) => {
    if (field !== ROW_GROUPS) return reader.skip(type)
    from = reader.at
    rowGroups = reader.list((at) => (isWanted(at) ? readRowGroup(reader) : reader.skip(STRUCT)))
    to = reader.at
  })
  const rest = new Uint8Array(length - (to - from) + 1 + END)
  rest.set(tail.subarray(start, from))
  rest[from - start] = EMPTY_LIST_OF_STRUCTS
  rest.set(tail.subarray(to), from - start + 1)
  new DataView(rest.buffer).setUint32(rest.length - END, rest.length - END, true)
  return { rest, rowGroups }
}

function readRowGroup(reader: Reader): RowGroup {
  let columns: RowGroup['columns'] = []
  let [total_byte_size, num_rows] = [0n, 0n]
  reader.fields((field, type) => {
    if (field === 1) columns = reader.list(() => readChunk(reader))
    else if (field === 2) total_byte_size = BigInt(reader.int())
    else if (field === 3) num_rows = BigInt(reader.int())
    else reader.skip(type)
  })
  return { columns, total_byte_size, num_rows }
}

function readChunk(reader: Reader): RowGroup['columns'][number] {
  let file_offset = 0n
  let meta_data: Meta | undefined
  reader.fields((field, type) => {
    if (field === 2) file_offset = BigInt(reader.int())
    else if (field === 3) meta_data = readMeta(reader)
    else reader.skip(type)
  })
  return { file_offset, meta_data: meta_data as unknown as ColumnMetaData }
}

function readMeta(reader: Reader): Meta {
  const meta: { -readonly [Name in keyof Meta]?: Meta[Name] } = { encodings: [] }
  reader.fields((field, type) => {
    switch (field) {
      case 1:
        meta.type = ParquetTypes[reader.int()] as Meta['type']
        break
      case 3:
        meta.path_in_schema = reader.list(() => reader.text())
        break
      case 4:
        meta.codec = CompressionCodecs[reader.int()] as Meta['codec']
        break
      case 5:
        meta.num_values = BigInt(reader.int())
        break
      case 6:
        meta.total_uncompressed_size = BigInt(reader.int())
        break
      case 7:
        meta.total_compressed_size = BigInt(reader.int())
        break
      case 9:
        meta.data_page_offset = BigInt(reader.int())
        break
      case 11:
        meta.dictionary_page_offset = BigInt(reader.int())
        break
      case 14:
        meta.bloom_filter_offset = BigInt(reader.int())
        break
      case 15:
        meta.bloom_filter_length = reader.int()
        break
      default:
        reader.skip(type)
    }
  })
  return meta as Meta
}

const decoder = new TextDecoder()

class Reader {
  at: number
  readonly #bytes: Uint8Array
  readonly #end: number

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.#bytes = bytes
    this.at = start
    this.#end = end
  }

  /** The fields of a struct; `read` must take the value of each. */
  fields(read: (field: number, type: number) => void): void {
    for (let field = 0, head = this.#byte(); head !== 0; head = this.#byte()) {
      const step = head >>> 4
      field = step === 0 ? this.int() : field + step
      read(field, head & 15)
    }
  }

  list<T>(read: (at: number) => T): T[] {
    const items = new Array<T>(this.#listHead().size)
    for (let i = 0; i < items.length; i++) items[i] = read(i)
    return items
  }

  /** Offsets in files are far below what a number can hold. */
  int(): number {
    const zigzag = this.#varint()
    return zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2
  }

  text(): string {
    const length = this.#varint()
    this.at += length
    return decoder.decode(this.#bytes.subarray(this.at - length, this.at))
  }

  skip(type: number): undefined {
    if (type === TRUE || type === FALSE) return
    if (type === BYTE) this.at += 1
    else if (type < DOUBLE) this.#varint()
    else if (type === DOUBLE) this.at += 8
    else if (type === BINARY) {
      const length = this.#varint()
      this.at += length
    } else if (type === LIST || type === SET) {
      const { size, of } = this.#listHead()
      // In a list, even what is true or false takes a byte.
      if (of === TRUE || of === FALSE) this.at += size
      else for (let i = 0; i < size; i++) this.skip(of)
    } else if (type === STRUCT) this.fields((_, inner) => this.skip(inner))
    else throw new Error(`its footer has something of type ${type}`)
  }

  #listHead(): { size: number; of: number } {
    const head = this.#byte()
    const size = head >>> 4
    return { size: size === 15 ? this.#varint() : size, of: head & 15 }
  }

  #varint(): number {
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
