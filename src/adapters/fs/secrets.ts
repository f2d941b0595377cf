import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, link, lstat, mkdir, open, rm } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { isServoError, ServoError } from '../../lib/error.ts'
import { isWorkspaceSecrets, type Secrets, type WorkspaceSecrets } from '../../ports/secrets.ts'
import { errnoOf, OWN_FILE, OWN_FOLDER } from './disk.ts'
import { explainFailure } from './failure.ts'

/** Secrets in a file that only its owner can read. */
export function fsSecrets(path: string): Secrets {
  const file = resolve(path)
  const folder = dirname(file)

  async function create(secrets: WorkspaceSecrets): Promise<'written' | 'exists'> {
    await mkdir(folder, { recursive: true, mode: OWN_FOLDER })
    const temp = `${folder}/.secrets-${process.pid}-${randomBytes(6).toString('hex')}`
    // With these rights from the first moment: no other user gets to open it in between.
    const handle = await open(temp, 'wx', OWN_FILE)
    try {
      await handle.writeFile(`${JSON.stringify(secrets, null, 2)}\n`)
      await handle.sync()
      const outcome = await linkTemp(temp, file)
      await syncFolder(folder)
      // Ours may be the first file in it.
      await syncFolder(dirname(folder))
      return outcome
    } finally {
      await handle.close()
      await rm(temp, { force: true })
    }
  }

  return {
    async read() {
      const text = await textOf(file)
      return text === undefined ? undefined : parseSecrets(text, file)
    },

    async create(secrets) {
      try {
        return await create(secrets)
      } catch (error) {
        throw explainFailure(error, { verb: 'create', path: basename(file), dir: folder })
      }
    },
  }
}

/** The target of a link may be anywhere, but must be a file: reading a pipe, for example, would block. */
async function textOf(file: string): Promise<string | undefined> {
  let handle: FileHandle | undefined
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
    if (!(await handle.stat()).isFile()) throw unreadable(file, 'it is not a file')
    return await handle.readFile('utf8')
  } catch (error) {
    if (isServoError(error)) throw error
    if (errnoOf(error) !== 'ENOENT') throw unreadable(file, errnoOf(error) ?? 'unknown', error)
    // Nothing is there to read, and yet nothing can be created there.
    if (await isSymlink(file)) throw unreadable(file, 'it is a symlink to nothing', error)
    return undefined
  } finally {
    await handle?.close()
  }
}

async function isSymlink(file: string): Promise<boolean> {
  return await lstat(file).then(
    (stat) => stat.isSymbolicLink(),
    () => false,
  )
}

async function linkTemp(temp: string, file: string): Promise<'written' | 'exists'> {
  try {
    await link(temp, file)
    return 'written'
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return 'exists'
    throw error
  }
}

async function syncFolder(folder: string): Promise<void> {
  let handle: FileHandle | undefined
  try {
    handle = await open(folder, 'r')
    await handle.sync()
  } finally {
    await handle?.close()
  }
}

function parseSecrets(text: string, file: string): WorkspaceSecrets {
  const value = jsonIn(text)
  if (isWorkspaceSecrets(value)) return value
  throw new ServoError('corrupt', 'bad_secrets', `${file} does not hold the secrets of a workspace`, {
    hint: 'Restore the file, or delete it: Servo then creates new secrets, and tokens of remote workers are no longer valid.',
    facts: { file },
  })
}

/** True if this is the text of a file of secrets. */
export const holdsSecrets = (text: string): boolean => isWorkspaceSecrets(jsonIn(text))

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Without the error, which would quote what is in the file.
    return undefined
  }
}

function unreadable(file: string, why: string, cause?: unknown): ServoError {
  return new ServoError('unavailable', 'secrets_unreadable', `cannot read the secrets in ${file}: ${why}`, {
    hint: 'Check that it is a file, who owns it and its permissions. It must be readable by the user that runs Servo.',
    facts: { file, errno: errnoOf(cause) },
    cause,
  })
}
