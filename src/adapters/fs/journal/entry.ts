import { crc32 } from 'node:zlib'
import type { ProcessIdentity } from '../process-identity.ts'

/*
 * The bytes of a journal: a block that says whose it is, then entries, each from the beginning of a block.
 */

/**
 * An entry begins at a multiple of this, so that writing one never touches a block of the one before: a power cut tears only the entry
 * that nobody was told of.
 */
export const BLOCK_BYTES = 4096

/** An object as the journal has it. */
export interface JournalEntry {
  /** Its path in the store. */
  readonly path: string
  readonly bytes: Uint8Array
}

const HEADER_MARK = 0x53_4a_48_31
const ENTRY_MARK = 0x53_4a_45_31
/** A mark and a checksum of everything after it. */
const SEAL_BYTES = 8
/** Generation, length of the path, length of the bytes. */
const LENGTHS_BYTES = 12

const inBlocks = (bytes: number): number => Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES

/** What an entry takes in the file. A path is ASCII. */
export const entryBytes = ({ path, bytes }: JournalEntry): number =>
  inBlocks(SEAL_BYTES + LENGTHS_BYTES + path.length + bytes.length)

/** `generation` counts how often the file was begun anew: entries of an earlier one lie behind those of this one. */
export function encodeEntry(entry: JournalEntry, generation: number): Uint8Array {
  const { path, bytes } = entry
  const block = Buffer.alloc(entryBytes(entry))
  block.writeUInt32LE(generation, SEAL_BYTES)
  block.writeUInt32LE(path.length, SEAL_BYTES + 4)
  block.writeUInt32LE(bytes.length, SEAL_BYTES + 8)
  const start = SEAL_BYTES + LENGTHS_BYTES
  block.write(path, start, 'latin1')
  block.set(bytes, start + path.length)
  return sealed(block, ENTRY_MARK, start + path.length + bytes.length)
}

export function encodeHeader(process: ProcessIdentity): Uint8Array {
  const text = Buffer.from(JSON.stringify(process))
  const block = Buffer.alloc(BLOCK_BYTES)
  block.writeUInt32LE(text.length, SEAL_BYTES)
  block.set(text, SEAL_BYTES + 4)
  return sealed(block, HEADER_MARK, SEAL_BYTES + 4 + text.length)
}

/** The process that keeps this journal; undefined if the beginning is damaged. */
export function readHeader(file: Buffer): ProcessIdentity | undefined {
  if (file.length < BLOCK_BYTES) return undefined
  const end = SEAL_BYTES + 4 + file.readUInt32LE(SEAL_BYTES)
  if (end > BLOCK_BYTES || !isSealed(file.subarray(0, end), HEADER_MARK)) return undefined
  const identity: ProcessIdentity = JSON.parse(file.toString('utf8', SEAL_BYTES + 4, end))
  return identity
}

/** The entries of the newest generation, up to the first that is not whole. */
export function entriesIn(file: Buffer): JournalEntry[] {
  const entries: JournalEntry[] = []
  let generation: number | undefined
  for (let at = BLOCK_BYTES; at + SEAL_BYTES + LENGTHS_BYTES <= file.length; ) {
    const entry = readEntryAt(file, at)
    if (entry === undefined || entry.generation !== (generation ?? entry.generation)) break
    generation = entry.generation
    entries.push({ path: entry.path, bytes: entry.bytes })
    at += entryBytes(entry)
  }
  return entries
}

function readEntryAt(file: Buffer, at: number): (JournalEntry & { generation: number }) | undefined {
  const start = at + SEAL_BYTES + LENGTHS_BYTES
  const pathEnd = start + file.readUInt32LE(at + SEAL_BYTES + 4)
  const end = pathEnd + file.readUInt32LE(at + SEAL_BYTES + 8)
  if (end > file.length || !isSealed(file.subarray(at, end), ENTRY_MARK)) return undefined
  return {
    generation: file.readUInt32LE(at + SEAL_BYTES),
    path: file.toString('latin1', start, pathEnd),
    bytes: file.subarray(pathEnd, end),
  }
}

function sealed(block: Buffer, mark: number, end: number): Uint8Array {
  block.writeUInt32LE(mark, 0)
  block.writeUInt32LE(crc32(block.subarray(SEAL_BYTES, end)), 4)
  return block
}

const isSealed = (bytes: Buffer, mark: number): boolean =>
  bytes.readUInt32LE(0) === mark && bytes.readUInt32LE(4) === crc32(bytes.subarray(SEAL_BYTES))
