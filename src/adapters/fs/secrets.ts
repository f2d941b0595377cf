import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { link, mkdir, open, readFile, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf, ServoError } from '../../lib/error.ts'
import { type Secrets, type WorkspaceSecrets, workspaceSecrets } from '../../ports/secrets.ts'
import { errnoOf, isMissing } from './disk.ts'

/** Secrets in a file that its owner alone may read. It appears whole, and is on the disk before anybody relies on it. */
export function fsSecrets(file: string): Secrets {
  return {
    read: () => readSecrets(file),
    async create(secrets) {
      const known = await readSecrets(file)
      if (known !== undefined) return known
      await writeSecrets(file, secrets).catch((error: unknown) => {
        throw new ServoError('unavailable', 'secrets_not_written', `${file} cannot be written: ${messageOf(error)}`, {
          hint: 'Check who may write there, and whether there is space.',
          cause: error,
        })
      })
      // Another may have been first.
      return (await readSecrets(file)) ?? secrets
    },
  }
}

async function readSecrets(file: string): Promise<WorkspaceSecrets | undefined> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if (isMissing(error)) return undefined
    throw new ServoError('unavailable', 'secrets_unreadable', `${file} cannot be read: ${messageOf(error)}`, {
      hint: 'It holds the secrets of the project: a file that whoever runs servo may read.',
      cause: error,
    })
  }
  const parsed = workspaceSecrets.safeParse(parseJson(text))
  if (parsed.success) return parsed.data
  throw new ServoError('corrupt', 'bad_secrets', `${file} does not hold the secrets of a project`, {
    hint: 'Restore it, or move it away: then the next start makes new ones. Runs keep their ids.',
  })
}

async function writeSecrets(file: string, secrets: WorkspaceSecrets): Promise<void> {
  const folder = dirname(file)
  await mkdir(folder, { recursive: true })
  const temp = `${file}.${randomBytes(6).toString('hex')}`
  const handle = await open(temp, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600)
  try {
    await handle.writeFile(`${JSON.stringify(secrets, null, 2)}\n`)
    await handle.sync()
    await link(temp, file).catch((error: unknown) => {
      if (errnoOf(error) !== 'EEXIST') throw error
    })
  } finally {
    await handle.close()
    await unlink(temp)
  }
  const entry = await open(folder, constants.O_RDONLY)
  await entry.sync().finally(() => entry.close())
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
