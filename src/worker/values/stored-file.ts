import { realpathSync } from 'node:fs'
import { sep } from 'node:path'
import { isOutputPath } from '../../contract/output-path.ts'
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
