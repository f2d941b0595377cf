import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { RunsApi } from '../api/run-contract.ts'
import { ServoClient } from '../client/client.ts'
import { ServoError } from '../lib/error.ts'
import { lockFile, secretsFile } from '../server/local-files.ts'
import { urlOfHolder } from '../server/process-lock.ts'
import { localSecrets } from '../server/secrets.ts'

export interface ProjectFlags {
  /** The folder of servo.config.ts. */
  project?: string
  json?: boolean
}

const CONFIGS = ['servo.config.ts', 'servo.config.mts', 'servo.config.js', 'servo.config.mjs']

/** The folder that holds the config: the one given, or the nearest above where we stand. */
export function findProject({ project }: ProjectFlags): string {
  const start = resolve(project ?? '.')
  if (project !== undefined) {
    if (!existsSync(start)) {
      throw new ServoError('not_found', 'no_such_folder', `there is no folder ${start}`, { hint: 'Check --project.' })
    }
    return start
  }
  for (let folder = start; ; folder = dirname(folder)) {
    if (CONFIGS.some((name) => existsSync(join(folder, name)))) return folder
    if (folder === dirname(folder)) return start
  }
}

export const servoDirOf = (projectDir: string): string => join(projectDir, '.servo')

/** Who sits at this terminal, for the record. */
export function currentUser(): string {
  try {
    return userInfo().username
  } catch {
    return 'local'
  }
}

/** The server that runs this project now, if one does. */
export async function runningServer(projectDir: string): Promise<RunsApi | undefined> {
  const servoDir = servoDirOf(projectDir)
  const url = await urlOfHolder(lockFile(servoDir))
  if (url === undefined) return undefined
  const { api_token: token } = await localSecrets(secretsFile(servoDir))
  return new ServoClient({ url, token })
}
