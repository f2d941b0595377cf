import { fork } from 'node:child_process'
import { extname, join } from 'node:path'
import { ServoError } from '../../lib/error.ts'
import type { ProjectCheck } from '../../sdk/check/project-check.ts'

/** Loads a project in a process of its own, which ends with the signal, and checks what it declares. */
export async function loadAndCheck(projectDir: string, now: Date, signal?: AbortSignal): Promise<ProjectCheck> {
  const script = join(import.meta.dirname, `check-process${extname(import.meta.filename)}`)
  // What modules print while they are loaded is not part of the answer.
  const child = fork(script, [projectDir, String(now.getTime())], {
    cwd: projectDir,
    execArgv: [],
    stdio: ['ignore', 2, 2, 'ipc'],
    ...(signal !== undefined && { signal, killSignal: 'SIGKILL' as const }),
  })
  return await new Promise((resolve, reject) => {
    let found: ProjectCheck | undefined
    child.on('message', (message: ProjectCheck) => {
      found = message
    })
    child.on('error', reject)
    child.on('close', (code, signal) => (found === undefined ? reject(ended(code, signal)) : resolve(found)))
  })
}

const ended = (code: number | null, signal: string | null): ServoError =>
  new ServoError(
    'invalid',
    'load_ended',
    `the process exited while it was loading the project (${signal ?? `exit code ${code}`})`,
    {
      hint: 'A module calls process.exit(), or crashes Node. Its output is above.',
    },
  )
