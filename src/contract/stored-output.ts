import { sha256 } from '../lib/hash.ts'
import { isObject } from '../lib/is-object.ts'

/** The longest JSON value that is recorded with the end of its attempt, in bytes: see ADR 0034. A larger one is a file. */
export const MAX_INLINE_BYTES = 4_096

/** All current values of an asset that are recorded so. An attempt that reads every partition gets them in one message. */
const MAX_INLINE_OF_ASSET = 2 ** 20

/** Up to how many bytes a JSON value is recorded with the end of its attempt, for an asset of so many partitions. */
export const inlineLimit = (partitions: number): number =>
  Math.min(MAX_INLINE_BYTES, Math.floor(MAX_INLINE_OF_ASSET / Math.max(1, partitions)))

/** Where a stored value is: in a file, or right here. */
export interface StoredOutput {
  /** In the data store. */
  readonly path: string | null
  /** Canonical JSON. */
  readonly value: string | null
  /** The size of the file, or of the text in UTF-8. */
  readonly bytes: number | null
  /** Of the same bytes, in hexadecimal; null if the worker reported none. */
  readonly sha256: string | null
}

/** Size and checksum of a value, as they are recorded with it. */
export const checksumOf = (bytes: Uint8Array): { bytes: number; sha256: string } => ({
  bytes: bytes.byteLength,
  sha256: sha256(bytes),
})

/** What the recorded output of an attempt says of its value; undefined if the attempt stored none. */
export function storedIn(output: unknown): StoredOutput | undefined {
  if (!isObject(output) || Array.isArray(output)) return undefined
  const { path, value, bytes, sha256: checksum } = output
  const stored = {
    path: textOrNull(path),
    value: textOrNull(value),
    bytes: Number.isSafeInteger(bytes) ? Number(bytes) : null,
    sha256: textOrNull(checksum),
  }
  return stored.path === null && stored.value === null ? undefined : stored
}

/**
 * The same, also of a value that was removed and is gone from the event that recorded it, which still has its size and checksum: what is on
 * record of it makes as many rows before and after.
 */
export function recordedIn(output: unknown): StoredOutput | undefined {
  const stored = storedIn(output)
  if (stored !== undefined) return stored
  if (!isObject(output) || Array.isArray(output)) return undefined
  const { bytes, sha256: checksum } = output
  if (!Number.isSafeInteger(bytes) || textOrNull(checksum) === null) return undefined
  return { path: null, value: null, bytes: Number(bytes), sha256: textOrNull(checksum) }
}

const textOrNull = (text: unknown): string | null => (typeof text === 'string' && text !== '' ? text : null)

/** The output of an attempt without the value itself: what is recorded of the attempt says how large it was, and its checksum. */
export function withoutValue(output: unknown): unknown {
  if (!isObject(output) || Array.isArray(output) || !('value' in output)) return output
  const { value: _, ...rest } = output
  return rest
}
