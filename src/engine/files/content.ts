import { createHash } from 'node:crypto'
import type { ObjectStore } from '../../ports/object-store.ts'

/** Objects are read in parts of this size: they may be larger than memory. */
const PART_BYTES = 4 << 20

/** What an object is known by. */
export interface FileContent {
  readonly bytes: number
  readonly sha256: string
}

/** The size and the checksum of an object as it is now; undefined if there is none. */
export async function contentOf(store: ObjectStore, path: string): Promise<FileContent | undefined> {
  const bytes = await store.size(path)
  if (bytes === undefined) return undefined
  const hash = createHash('sha256')
  for (let start = 0; start < bytes; start += PART_BYTES) {
    const part = await store.getRange(path, start, Math.min(PART_BYTES, bytes - start))
    if (part === undefined) return undefined
    hash.update(part)
  }
  return { bytes, sha256: hash.digest('hex') }
}

export const isSameContent = (one: FileContent | undefined, other: FileContent): boolean =>
  one?.bytes === other.bytes && one.sha256 === other.sha256
