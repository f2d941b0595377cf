import { spawn } from 'node:child_process'
import path from 'node:path'

const main = path.resolve(import.meta.dirname, '../../src/cli/main.ts')

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the command as a user does, in a process of its own. */
export async function servo(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): Promise<Ran> {
  const env = { ...process.env, NO_COLOR: '1', ...options.env }
  const child = spawn(process.execPath, [main, ...args], { env, cwd: options.cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve) => child.on('close', resolve)),
  ])
  return { code, stdout, stderr }
}

/** Runs a line in a shell, with `servo` standing for the command. */
export async function shell(line: string, cwd?: string): Promise<Ran> {
  const script = `servo() { "$SERVO_NODE" "$SERVO_MAIN" "$@"; }; ${line}`
  const env = { ...process.env, NO_COLOR: '1', SERVO_NODE: process.execPath, SERVO_MAIN: main }
  const child = spawn('bash', ['-c', script], { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve) => child.on('close', resolve)),
  ])
  return { code, stdout, stderr }
}

async function text(stream: NodeJS.ReadableStream): Promise<string> {
  let all = ''
  for await (const chunk of stream) all += chunk
  return all
}
