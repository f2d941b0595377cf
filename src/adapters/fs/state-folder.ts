import { chmodSync, lstatSync, mkdirSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ServoError } from '../../lib/error.ts'
import { errnoOf, OWN_FILE, OWN_FOLDER } from './disk.ts'
import { explainFailure } from './failure.ts'

/** Makes the folder of the state unless it is there, and closes it to other users. Git leaves out what is in a new one. */
export function makeStateFolder(dir: string): void {
  try {
    mkdirSync(dir, OWN_FOLDER)
    writeFileSync(join(dir, '.gitignore'), '*\n', { mode: OWN_FILE })
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw explainFailure(error, { verb: 'create', path: basename(dir), dir: dirname(dir) })
    checkStateFolder(dir)
    closeToOthers(dir)
  }
}

/** Refuses something else in the place of the folder: a file, or a link that leads nowhere. True if there is a folder. */
export function checkStateFolder(dir: string): boolean {
  const named = lstatSync(dir, { throwIfNoEntry: false })
  if (named === undefined) return false
  try {
    if (statSync(dir).isDirectory()) return true
  } catch (error) {
    const errno = errnoOf(error)
    if (errno !== 'ENOENT' && errno !== 'ELOOP')
      throw explainFailure(error, { verb: 'read', path: basename(dir), dir: dirname(dir) })
    const target = readlinkSync(dir)
    throw errno === 'ELOOP'
      ? inTheWay(`${dir} is a symbolic link that leads back to itself (${target})`, 'Remove the link, or point it to a folder.')
      : inTheWay(
          `${dir} is a symbolic link to ${target}, which does not exist`,
          'Create that folder (is its disk mounted?), or remove the link.',
        )
  }
  throw inTheWay(`${dir} is a file, not a folder`, 'Move it away: Servo keeps its state in a folder with this name.')
}

const inTheWay = (message: string, hint: string): ServoError =>
  new ServoError('unavailable', 'state_folder_blocked', message, { hint })

/** A folder from an older version, a copy or another umask may be open. Below a folder that only its owner enters, nothing is. */
function closeToOthers(dir: string): void {
  // Windows has other permissions, and only the owner can change them.
  if (process.platform === 'win32') return
  const { mode, uid } = statSync(dir)
  if ((mode & 0o077) !== 0 && uid === process.getuid?.()) chmodSync(dir, OWN_FOLDER)
}
