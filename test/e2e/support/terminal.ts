import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { inject, onTestFinished } from 'vitest'
import { until } from './until.ts'

/** Runs a command on a terminal of 100 columns, and passes on what is typed and shown. */
const PTY = `import fcntl, os, pty, struct, sys, termios
def size(fd): fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 30, 100, 0, 0))
def read(fd):
    size(fd)
    return os.read(fd, 65536)
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:], read)))
`

/** An escape with its number and letter, the end of a line, or text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escapes are what it finds.
const WRITTEN = /\x1b\[([\d;]*)([A-Za-z])|(\r?\n)|\r|([^\x1b\r\n]+)/g

/** Without python3 there is no terminal to play on; where everything is required, its tests fail instead. */
export const lacksTerminal: boolean =
  spawnSync('python3', ['-c', 'import pty']).status !== 0 && process.env['SERVO_REQUIRE_ALL'] !== '1'
if (lacksTerminal) console.warn('What commands show on a terminal is not tested: python3 is missing.')

/** The command as a person sees it at a terminal. */
export class Terminal {
  /** Everything that was written to the terminal, escapes and all. */
  written = ''
  readonly ended: Promise<number | null>
  readonly #child: ChildProcess

  constructor(args: readonly string[], cwd: string, env: Record<string, string> = {}) {
    const { NO_COLOR: _, CI: __, ...outside } = process.env
    this.#child = spawn('python3', ['-c', PTY, process.execPath, inject('servoMain'), ...args], {
      cwd,
      env: { ...outside, TERM: 'xterm-256color', ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      this.written += chunk
    })
    this.ended = new Promise((resolve) => this.#child.on('close', resolve))
    onTestFinished(() => void this.#child.kill('SIGKILL'))
  }

  type(text: string): void {
    this.#child.stdin?.write(text)
  }

  /** What the terminal shows now, line by line, without colours. */
  get screen(): string[] {
    const lines = ['']
    let row = 0
    for (const [, count, command, newline, text = ''] of this.written.matchAll(WRITTEN)) {
      if (command === 'A') row = Math.max(0, row - Number(count))
      else if (command === 'J') lines.splice(row, lines.length, '')
      else if (newline !== undefined) lines[++row] ??= ''
      else lines[row] += text
    }
    return lines
  }

  async shows(what: RegExp): Promise<void> {
    await until(() => {
      if (this.screen.some((line) => what.test(line))) return true
      if (this.#child.exitCode !== null) throw new Error(`it ended without showing ${what}:\n${this.written}`)
      return false
    }, `${what}`)
  }
}
