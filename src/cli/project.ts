import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { checkStateFolder } from '../adapters/fs/state-folder.ts'
import { ServoError } from '../lib/error.ts'
import { traceparentOf } from '../lib/traceparent.ts'
import { applyEnvFiles } from '../sdk/project/env-files.ts'
import { configFile } from '../sdk/project/project-files.ts'
import type { LocalComponents } from '../server/components.ts'
import type { RemoteFlags } from './remote/remote-server.ts'

export interface ProjectFlags extends RemoteFlags {
  /** The folder of servo.config.ts. */
  project?: string
  json?: boolean
}

/** A project that ran before can be read and repaired even if its config is gone. */
const isProject = (folder: string): boolean => configFile(folder) !== undefined || existsSync(servoDirOf(folder))

/** The folder of the project: the one given, or the nearest above the current folder. Its env files count from here on. */
export function findProject(flags: ProjectFlags): string {
  const folder = projectFolder(flags)
  applyEnvFiles(folder)
  return folder
}

/** The same without its env files. */
export function projectFolder({ project }: ProjectFlags): string {
  const start = resolve(project ?? '.')
  if (project !== undefined) {
    if (isProject(start)) return start
    if (existsSync(start)) throw noProject(`no servo.config.ts in ${start}`)
    throw new ServoError('not_found', 'no_such_folder', `folder not found: ${start}`, { hint: 'Check --project.' })
  }
  for (let folder = start; ; folder = dirname(folder)) {
    if (isProject(folder)) return folder
    if (folder === dirname(folder)) throw noProject(`no servo.config.ts in ${start} or any folder above it`)
  }
}

const noProject = (message: string): ServoError =>
  new ServoError('not_found', 'no_project', message, {
    hint: 'Change to the folder of a project, or name it with --project. servo init creates one.',
  })

export const servoDirOf = (projectDir: string): string => join(projectDir, '.servo')

/** Refuses to look into a project that never ran. */
export function refuseEmpty(servoDir: string): void {
  if (checkStateFolder(servoDir)) return
  throw new ServoError('not_found', 'no_state', `nothing is recorded in ${servoDir} yet`, {
    hint: 'Start the project with servo dev, or run an asset with servo run.',
  })
}

/** The user at this terminal, for the record. */
export function currentUser(): string {
  try {
    return userInfo().username
  } catch {
    return 'local'
  }
}

/** The trace that this command belongs to, from the environment. */
export const currentTrace = (): string | undefined => traceparentOf(process.env['TRACEPARENT'])

/** The components of the project's folder. They are loaded on demand, so that `servo --help` need not wait for them. */
export async function componentsOf(projectDir: string): Promise<LocalComponents> {
  const { localComponents } = await import('../server/components.ts')
  return localComponents(servoDirOf(projectDir))
}
