import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ServoError } from '../../lib/error.ts'

export type PackageManager = 'npm' | 'pnpm' | 'yarn' | 'bun'

const LOCK_FILES: Readonly<Record<string, PackageManager>> = {
  'package-lock.json': 'npm',
  'pnpm-lock.yaml': 'pnpm',
  'yarn.lock': 'yarn',
  'bun.lock': 'bun',
}

/** The one that the folder is used with, or the one that started this command, or npm. */
export function packageManagerOf(dir: string): PackageManager {
  const locked = Object.entries(LOCK_FILES).find(([file]) => existsSync(join(dir, file)))?.[1]
  const [starter] = (process.env['npm_config_user_agent'] ?? '').split('/', 1)
  return locked ?? Object.values(LOCK_FILES).find((each) => each === starter) ?? 'npm'
}

/** Of the output of an installation that failed, the end says why. */
const TOLD_LINES = 12

/** Installs what the package.json of a folder lists. */
export async function installPackages(manager: PackageManager, dir: string): Promise<void> {
  const { code, output } = await ran(
    manager,
    manager === 'npm' ? ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'] : ['install'],
    dir,
  )
  if (code === 0) return
  const told = output.trim().split('\n').slice(-TOLD_LINES).join('\n')
  throw new ServoError('unavailable', 'not_installed', `${manager} install failed in ${dir}:\n${told}`, {
    hint: `The project was created. Solve this, then run ${manager} install in ${dir}.`,
  })
}

async function ran(command: string, args: readonly string[], cwd: string): Promise<{ code: number | null; output: string }> {
  let output = ''
  // Windows starts a .cmd file only through a shell.
  const child = spawn(command, args, {
    cwd,
    env: ownEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  })
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
  const code = await new Promise<number | null>((resolve) => {
    child.on('error', (error) => {
      output += error.message
      resolve(null)
    })
    child.on('close', resolve)
  })
  return { code, output }
}

/** Without what npx says of itself: the package that it ran, and in which folder, are not those of the project. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const own = /^npm_(?:command|lifecycle_\w+|package_\w+|config_(?:package|call|yes|local_prefix|prefix|global|global_prefix))$/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own.test(name)))
}
