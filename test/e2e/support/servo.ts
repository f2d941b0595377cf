import { type ChildProcess, spawn } from 'node:child_process'
import { inject } from 'vitest'
import { until } from './until.ts'

const main = inject('servoMain')

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface Surroundings {
  readonly env?: Record<string, string>
  readonly cwd?: string
  /** The Node that runs it; that of the tests unless told. */
  readonly node?: string
}

/** Runs the command as a user does, in a process of its own. */
export async function servo(args: readonly string[], surroundings: Surroundings = {}): Promise<Ran> {
  return await new Servo(args, surroundings).ended
}

/** The command while it runs: what it has said so far, and signals to it. */
export class Servo {
  readonly ended: Promise<Ran>
  /** Both streams, as a terminal would show them. */
  shown = ''
  readonly #child: ChildProcess

  constructor(args: readonly string[], { env, cwd, node = process.execPath }: Surroundings = {}) {
    this.#child = spawn(node, [main, ...args], {
      env: { ...process.env, NO_COLOR: '1', ...env },
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const show = (chunk: string): void => {
      this.shown += chunk
    }
    this.#child.stdout?.setEncoding('utf8').on('data', show)
    this.#child.stderr?.setEncoding('utf8').on('data', show)
    this.ended = ran(this.#child)
  }

  get pid(): number {
    return this.#child.pid as number
  }

  /** Waits until it says something; with `after`, until it says it beyond that many characters. */
  async says(what: RegExp, after = 0): Promise<RegExpExecArray> {
    const found = (): RegExpExecArray | null => what.exec(this.shown.slice(after))
    await until(() => {
      if (found() === null && this.#child.exitCode !== null) throw new Error(`it ended without saying ${what}:\n${this.shown}`)
      return found() !== null
    }, `${what}`)
    return found() as RegExpExecArray
  }

  /** Where a `servo dev` that is ready can be spoken to, by its own first line. */
  get url(): string {
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(this.shown) ?? []
    if (url === undefined) throw new Error(`it has not said where it listens:\n${this.shown}`)
    return url
  }

  get isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }
}

/** Runs a line in a shell, with `servo` standing for the command. */
export async function shell(line: string, cwd?: string): Promise<Ran> {
  const script = `servo() { "$SERVO_NODE" "$SERVO_MAIN" "$@"; }; ${line}`
  const env = { ...process.env, NO_COLOR: '1', SERVO_NODE: process.execPath, SERVO_MAIN: main }
  return await ran(spawn('bash', ['-c', script], { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] }))
}

async function ran(child: ChildProcess): Promise<Ran> {
  let [stdout, stderr] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk
  })
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk
  })
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, stdout, stderr }
}
