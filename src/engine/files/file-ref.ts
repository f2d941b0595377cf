import { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import type { ObjectStore } from '../../ports/object-store.ts'

/** A file as a manifest names it: enough to know it again and to notice when it is not what was written. */
export interface FileRef {
  readonly path: string
  readonly bytes: number
  readonly rows: number
  readonly sha256: string
}

/** A sorted file as a manifest names it. */
export interface SortedFileRef extends FileRef {
  /** How many times its rows were merged; files of a level are merged into one of the next when there are enough. */
  readonly level: number
  /** Look-ups read the footer without the rest of the file, so it has a checksum of its own. */
  readonly footer_crc32: number
  /** Lets the footer be read with one request. Absent in manifests of earlier versions. */
  readonly footer_bytes?: number
}

/** The same way out for every damaged file: all of them can be made again from the ledger. */
export const REPAIR_HINT =
  'Run `servo verify` to see what else is damaged, then `servo rebuild` to rebuild the files from the ledger.'

export function fileRef(path: string, bytes: Uint8Array, rows: number): FileRef {
  return { path, bytes: bytes.length, rows, sha256: sha256(bytes) }
}

/** The whole file, checked against the size and the SHA-256 that the manifest names. */
export async function getChecked(store: ObjectStore, ref: FileRef): Promise<Uint8Array> {
  const bytes = await store.get(ref.path)
  if (bytes === undefined) throw fileMissing(ref)
  if (bytes.length !== ref.bytes) throw checksumMismatch(ref, `it has ${bytes.length} bytes instead of ${ref.bytes}`)
  const actual = sha256(bytes)
  if (actual !== ref.sha256) throw checksumMismatch(ref, `its SHA-256 is ${actual} instead of ${ref.sha256}`)
  return bytes
}

export function fileMissing(ref: FileRef): ServoError {
  return new ServoError('corrupt', 'file_missing', `${ref.path} is missing, but the manifest names it`, {
    hint: REPAIR_HINT,
    facts: { path: ref.path },
  })
}

export function checksumMismatch(ref: FileRef, difference: string): ServoError {
  return new ServoError('corrupt', 'checksum_mismatch', `${ref.path} is not the file that was written: ${difference}`, {
    hint: REPAIR_HINT,
    facts: { path: ref.path, bytes: ref.bytes, sha256: ref.sha256 },
  })
}

/** For bytes that are there but make no sense. */
export function unreadable(file: string, why: string, cause?: unknown): ServoError {
  return new ServoError('corrupt', 'file_unreadable', `${file} cannot be read: ${why}`, {
    hint: REPAIR_HINT,
    facts: { path: file },
    cause,
  })
}
