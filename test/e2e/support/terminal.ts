import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { inject } from 'vitest'
import { until } from './until.ts'

/** Runs a command on a terminal of its own; what comes on standard input is typed there. */
const PLAY = `
import os, pty, sys, select, fcntl, termios, struct
pid, screen = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 120, 0, 0))
sources = [screen, 0]
while True:
    ready, _, _ = select.select(sources, [], [])
    if 0 in ready:
        typed = os.read(0, 4096)
        if typed: os.write(screen, typed)
        else: sources.remove(0)
    if screen in ready:
        try: shown = os.read(screen, 4096)
        except OSError: break
        if not shown: break
        os.write(1, shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`

const python = spawnSync('python3', ['-c', 'import pty'])
/** Without python3 there is no terminal to play on; where everything is required, its tests fail instead. */
export const lacksTerminal: boolean = python.status !== 0 && process.env['SERVO_REQUIRE_ALL'] !== '1'
if (lacksTerminal) console.warn('What a command asks on a terminal is not tested: python3 is missing.')

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a terminal is sent.
const CONTROL = /\u001b\[[0-9;?]*[A-Za-z]|\r/g

/** A command of ours as somebody at a terminal sees it. */
export class Played {
  readonly #child: ChildProcess
  readonly code: Promise<number | null>
  #sent = ''

  constructor(args: readonly string[], cwd: string) {
    const env = { ...process.env, TERM: 'xterm', NO_COLOR: '1', CI: '' }
    this.#child = spawn('python3', ['-c', PLAY, process.execPath, inject('servoMain'), ...args], { cwd, env })
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      this.#sent += chunk
    })
    this.code = new Promise((resolve) => this.#child.on('close', resolve))
  }

  /** The lines so far, without what moves the cursor. */
  get screen(): string {
    return this.#sent.replace(CONTROL, '')
  }

  async shows(text: string): Promise<void> {
    await until(() => this.screen.includes(text), `${text} on\n${this.screen}`)
  }

  type(text: string): void {
    this.#child.stdin?.write(text)
  }
}
