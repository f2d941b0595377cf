import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, globSync } from 'node:fs'
import path from 'node:path'
import { atEnd } from './ending.ts'
import { freePort } from './free-port.ts'
import { scratchFolder } from './scratch.ts'

export interface Postgres {
  readonly url: string
  readonly pid: number
}

/** A server of our own, as it is after `initdb`, with its data beside the benchmark's. It syncs what it commits. */
export async function startPostgres(): Promise<Postgres> {
  const bin = folderOfPostgres()
  const folder = scratchFolder('postgres')
  const user = unprivileged()
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const data = path.join(folder, 'data')
  const [program = '', ...words] = [...asUser(user), path.join(bin, 'initdb'), '-D', data, '-U', 'bench', '-A', 'trust']
  execFileSync(program, [...words, '--encoding=UTF8', '--locale=C'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })

  const port = await freePort()
  const settings = { listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'on', synchronous_commit: 'on' }
  const server = [path.join(bin, 'postgres'), '-D', data, '-p', String(port)]
  for (const [name, value] of Object.entries(settings)) server.push('-c', `${name}=${value}`)
  const [command = '', ...args] = [...asUser(user), ...dyingWithUs, ...server]
  // A group of its own: Ctrl-C in a terminal is for the benchmark, which ends the server when nobody uses it any more.
  const child = spawn(command, args, { cwd: folder, detached: true, stdio: ['ignore', 'ignore', 'pipe'] })
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
  atEnd(async () => {
    child.kill('SIGINT')
    await gone
  })
  await accepting(child)
  return { url: `postgres://bench@127.0.0.1:${port}/postgres`, pid: child.pid as number }
}

/** Even when we are killed with no time to clean up, a server hears of it. SIGINT is the fast shutdown of PostgreSQL. */
export const dyingWithUs = process.platform === 'linux' ? ['setpriv', '--pdeathsig', 'INT', '--'] : []

function folderOfPostgres(): string {
  const onPath = (process.env['PATH'] ?? '').split(path.delimiter).filter(Boolean)
  const debian = globSync('/usr/lib/postgresql/*/bin').sort((a, b) => version(b) - version(a))
  const found = [...onPath, ...debian].find((folder) => globSync(path.join(folder, '{initdb,postgres}')).length === 2)
  if (found !== undefined) return found
  console.error(
    'This benchmark compares with graphile-worker, which needs PostgreSQL 12 or later.\n' +
      'Install it (Debian: apt install postgresql) or put the folder of its programs on the PATH, and run this again.',
  )
  process.exit(1)
}

const version = (folder: string): number => Number(folder.split(path.sep).at(-2))

/** PostgreSQL refuses to run as root; its package has made a user for it. */
function unprivileged(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (what: string): number => Number(execFileSync('id', [what, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

const asUser = (user: { uid: number; gid: number } | undefined): string[] =>
  user === undefined ? [] : ['setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups', '--']

function accepting({ stderr, exitCode }: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = exitCode === null ? '' : `it exited with ${exitCode}`
    stderr?.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-4_000)
      if (said.includes('ready to accept connections')) resolve()
    })
    stderr?.once('close', () => reject(new Error(`PostgreSQL did not start:\n${said}`)))
  })
}
