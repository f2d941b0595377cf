import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { ServoError } from '../../lib/error.ts'
import { sha256, sha256Bytes } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import { newerFormat } from '../files/newer-format.ts'

/*
 * An archive holds segments of one day as they are, and can be read with any tool: `zstdcat` prints one segment per line. It is a row of
 * zstd frames, each of whole lines, then two frames that other tools skip: the index, which is compressed itself, and a trailer by which
 * the index is found. The trailer has the checksum of the index, and the index those of all frames and segments and the name of the
 * archive, so no byte can change unseen and no archive passes for another.
 */

/** A segment in an archive. */
export interface ArchivedSegment {
  readonly ulid: string
  /** The frame that it is in, and where in the frame's text. */
  readonly block: number
  readonly offset: number
  readonly bytes: number
  readonly sha256: string
  /** The segment as it was written, if values were left out when it was packed. */
  readonly original?: OriginalSegment
}

export interface OriginalSegment {
  readonly bytes: number
  readonly sha256: string
  /** The SHA-256 of values that were purged or have expired: the events keep their size and checksum. */
  readonly forgotten_values: readonly string[]
}

interface Block {
  readonly bytes: number
  readonly sha256: string
  /** Bytes of text in it. */
  readonly text_bytes: number
}

export interface ArchiveIndex {
  readonly format: typeof FORMAT
  /** The name of the archive's file. */
  readonly archive: string
  readonly blocks: readonly Block[]
  readonly segments: readonly ArchivedSegment[]
}

/** A segment that is to be packed. */
export interface PackedSegment {
  readonly ulid: string
  readonly bytes: Uint8Array
  readonly original?: OriginalSegment
}

const FORMAT = 1
/** Text per frame. Of one megabyte archives are an eighth larger, of eight no smaller; and a reader of one segment decompresses all of its frame. */
const BLOCK_BYTES = 4 << 20
/** Archives are written once and kept for years. A higher level takes three times as long for a few per cent. */
const LEVEL = 9
/** One of the numbers by which zstd knows a frame to skip. */
const SKIPPED = 0x184d2a5e
const HEAD_BYTES = 8
const MARK = 'SVA1'
const TRAILER_BYTES = HEAD_BYTES + MARK.length + 4 + 32

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)
const params = { [constants.ZSTD_c_compressionLevel]: LEVEL, [constants.ZSTD_c_checksumFlag]: 0 }

const nameOfArchive = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** The bytes of an archive of this name. */
export async function encodeArchive(path: string, packed: readonly PackedSegment[]): Promise<Uint8Array> {
  const frames: Uint8Array[] = []
  const blocks: Block[] = []
  const segments: ArchivedSegment[] = []
  for (const group of grouped(packed)) {
    let offset = 0
    const lines: Uint8Array[] = []
    for (const { ulid, bytes, original } of group) {
      const place = { ulid, block: blocks.length, offset, bytes: bytes.length, sha256: sha256(bytes) }
      segments.push(original === undefined ? place : { ...place, original })
      lines.push(bytes, NEWLINE)
      offset += bytes.length + 1
    }
    const frame = await compress(Buffer.concat(lines), { params })
    frames.push(frame)
    blocks.push({ bytes: frame.length, sha256: sha256(frame), text_bytes: offset })
  }
  const index: ArchiveIndex = { format: FORMAT, archive: nameOfArchive(path), blocks, segments }
  const stored = await compress(Buffer.from(canonicalJson(index)), { params })
  return Buffer.concat([...frames, skipped(stored), trailerOf(stored)])
}

const NEWLINE = Buffer.from('\n')

function* grouped(packed: readonly PackedSegment[]): Generator<PackedSegment[]> {
  let group: PackedSegment[] = []
  let bytes = 0
  for (const segment of packed) {
    if (group.length > 0 && bytes + segment.bytes.length > BLOCK_BYTES) {
      yield group
      group = []
      bytes = 0
    }
    group.push(segment)
    bytes += segment.bytes.length + 1
  }
  if (group.length > 0) yield group
}

function skipped(content: Uint8Array): Uint8Array {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32LE(SKIPPED, 0)
  head.writeUInt32LE(content.length, 4)
  return Buffer.concat([head, content])
}

function trailerOf(index: Uint8Array): Uint8Array {
  const content = Buffer.alloc(MARK.length + 4)
  content.write(MARK)
  content.writeUInt32LE(index.length, MARK.length)
  return skipped(Buffer.concat([content, sha256Bytes(index)]))
}

/** Bytes of an archive, from a store or from memory. */
export interface ArchiveSource {
  readonly path: string
  readonly size: number
  range(start: number, length: number): Promise<Uint8Array>
}

const archiveInMemory = (path: string, bytes: Uint8Array): ArchiveSource => ({
  path,
  size: bytes.length,
  range: async (start, length) => bytes.subarray(start, start + length),
})

/** The index of an archive. Throws `corrupt` unless it is whole and the archive is in its place. */
export async function readIndex(source: ArchiveSource): Promise<ArchiveIndex> {
  const index = await readAnyIndex(source)
  const name = nameOfArchive(source.path)
  if (index.archive === name) return index
  throw new ServoError('corrupt', 'misplaced_archive', `${source.path} holds the archive ${index.archive}`, {
    hint: 'It was moved, copied or swapped with another. `servo rebuild` puts it back where it belongs.',
    facts: { path: source.path, holds: index.archive },
  })
}

/** The same wherever the archive lies. */
async function readAnyIndex({ path, size, range }: ArchiveSource): Promise<ArchiveIndex> {
  const trailerAt = size - TRAILER_BYTES
  const trailer = Buffer.from(trailerAt < 0 ? [] : await range(trailerAt, TRAILER_BYTES))
  if (trailer.length < TRAILER_BYTES) throw damagedArchive(path, 'it is cut off')
  const indexBytes = trailer.readUInt32LE(HEAD_BYTES + MARK.length)
  const indexAt = trailerAt - indexBytes
  if (indexAt < HEAD_BYTES) throw damagedArchive(path, 'it does not end like an archive')
  const framed = Buffer.from(await range(indexAt - HEAD_BYTES, HEAD_BYTES + indexBytes))
  const stored = framed.subarray(HEAD_BYTES)
  if (!trailer.equals(trailerOf(stored)) || !framed.equals(skipped(stored)))
    throw damagedArchive(path, 'it is cut off, or its index does not match its checksum')
  const index = await indexIn(stored, path)
  const blockBytes = index.blocks.reduce((sum, { bytes }) => sum + bytes, 0)
  if (blockBytes !== indexAt - HEAD_BYTES)
    throw damagedArchive(path, `it has ${indexAt - HEAD_BYTES} bytes before its index instead of ${blockBytes}`)
  return index
}

async function indexIn(stored: Uint8Array, path: string): Promise<ArchiveIndex> {
  const index = JSON.parse((await decompress(stored)).toString('utf8')) as ArchiveIndex
  if (index.format === FORMAT) return index
  throw newerFormat(path, `${path} has format ${String(index.format)}, this version of Servo reads format ${FORMAT}`)
}

/** The text of one frame. */
export async function readBlock(source: ArchiveSource, index: ArchiveIndex, number: number): Promise<Uint8Array> {
  const block = index.blocks[number]
  if (block === undefined) throw damagedArchive(source.path, `it has no part ${number + 1}`)
  const start = index.blocks.slice(0, number).reduce((sum, { bytes }) => sum + bytes, 0)
  const frame = await source.range(start, block.bytes)
  if (sha256(frame) !== block.sha256) {
    const lost = index.segments.filter((segment) => segment.block === number).map(({ ulid }) => ulid)
    const which = lost.length === 1 ? `the segment ${lost[0]}` : `${lost.length} segments, ${lost[0]} to ${lost.at(-1)},`
    throw damagedArchive(source.path, `a part of it does not match its checksum; ${which} cannot be read`)
  }
  return await decompress(frame)
}

/** The bytes of a segment, from the text of its frame. */
export function segmentBytes(path: string, text: Uint8Array, segment: ArchivedSegment): Uint8Array {
  const bytes = text.subarray(segment.offset, segment.offset + segment.bytes)
  if (sha256(bytes) === segment.sha256) return bytes
  throw damagedArchive(path, `the segment ${segment.ulid} does not match its checksum`)
}

/** The name that a whole archive says, wherever it lies. */
export async function readAnyArchive(path: string, bytes: Uint8Array): Promise<string> {
  const { archive } = await readAnyIndex(archiveInMemory(path, bytes))
  await checkArchive(archive, bytes)
  return archive
}

/** Reads a whole archive, and shows every segment. Returns how many there are; throws `corrupt` unless all is as it was written. */
export async function checkArchive(
  path: string,
  bytes: Uint8Array,
  show?: (ulid: string, bytes: Uint8Array, segment: ArchivedSegment) => void,
): Promise<number> {
  const source = archiveInMemory(path, bytes)
  const index = await readIndex(source)
  let last = -1
  let text: Uint8Array = new Uint8Array()
  for (const segment of index.segments) {
    if (segment.block !== last) text = await readBlock(source, index, segment.block)
    last = segment.block
    const stored = segmentBytes(path, text, segment)
    show?.(segment.ulid, stored, segment)
  }
  return index.segments.length
}

/** Of the segment as it was written. */
export const originalSha256 = (segment: ArchivedSegment): string => segment.original?.sha256 ?? segment.sha256

function damagedArchive(path: string, why: string): ServoError {
  return new ServoError('corrupt', 'damaged_archive', `${path} is damaged: ${why}`, {
    hint: 'Restore the file from a backup; `servo verify` lists everything that is damaged.',
    facts: { path },
  })
}
