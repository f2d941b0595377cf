import { createHash } from 'node:crypto'
import { createReadStream, realpathSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { sep } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { isOutputPath } from '../../contract/output-path.ts'
import { checksumOf } from '../../contract/stored-output.ts'
import { hasErrorCode, ServoError } from '../../lib/error.ts'

/**
 * Refuses a path that leads out of the data folder. Reports are checked when they are accepted, but a ledger may hold older
 * ones, and a folder on the way may have become a symlink. The data folder itself may be one.
 */
export function checkStoredPath(path: string, fileOf: ((path: string) => string) | undefined): void {
  if (!isOutputPath(path)) throw leadsOut(path)
  if (fileOf === undefined) return
  const file = real(fileOf(path))
  // A missing file gets a better message when it is opened.
  if (file === undefined) return
  const folder = real(fileOf('data'))
  if (folder === undefined || !file.startsWith(folder + sep)) throw leadsOut(path)
}

function real(file: string): string | undefined {
  try {
    return realpathSync.native(file)
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return undefined
    throw error
  }
}

const leadsOut = (path: string): ServoError =>
  new ServoError('invalid', 'bad_stored_path', `${JSON.stringify(path.slice(0, 200))} is outside the data folder`, {
    hint: 'Materialize the asset again. A worker may only report what it wrote below data/.',
  })

/** For a file that is on record and not there. */
export function throwMissing(path: string): never {
  throw new ServoError('corrupt', 'value_missing', `${path} does not exist`, {
    hint: 'The file was deleted after it was written. Materialize the asset again.',
    facts: { path },
  })
}

/** Size and checksum of a value, as far as its attempt reported them. */
export interface RecordedChecksum {
  readonly bytes?: number | null | undefined
  readonly sha256?: string | null | undefined
}

/** Refuses bytes that are not those that were written. `name` is what errors call them. */
export function checkBytes(name: string, bytes: Uint8Array, recorded: RecordedChecksum): void {
  checkSize(name, bytes.byteLength, recorded)
  if (recorded.sha256) checkSum(name, checksumOf(bytes).sha256, recorded.sha256)
}

/**
 * A reader may want two columns of a table. Hashing takes a millisecond per megabyte, so that up to here nobody notices; of a larger
 * file readers compare the size, and `servo verify --data` all of it.
 */
export const MAX_HASHED_BYTES = 256 * 2 ** 20

/** Refuses a file that is not the one that was written. */
export async function checkFile(file: string, name: string, recorded: RecordedChecksum): Promise<void> {
  if (!recorded.sha256 && typeof recorded.bytes !== 'number') return
  const { size } = await stat(file)
  checkSize(name, size, recorded)
  if (!recorded.sha256 || size > MAX_HASHED_BYTES) return
  const hash = createHash('sha256')
  await pipeline(createReadStream(file, { highWaterMark: 2 ** 20 }), hash)
  checkSum(name, hash.digest('hex'), recorded.sha256)
}

export function checkSize(name: string, bytes: number, recorded: RecordedChecksum): void {
  if (recorded.bytes !== null && recorded.bytes !== undefined && bytes !== recorded.bytes)
    throw damaged(name, `it has ${bytes} bytes instead of ${recorded.bytes}`)
}

function checkSum(name: string, sha256: string, recorded: string): void {
  if (sha256 !== recorded) throw damaged(name, `its SHA-256 is ${sha256} instead of ${recorded}`)
}

const damaged = (name: string, how: string): ServoError =>
  new ServoError('corrupt', 'value_damaged', `${name} was changed after it was written: ${how}`, {
    hint: 'Restore it from a backup, or materialize the asset again.',
    facts: { path: name },
  })
