import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
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
const WRITTEN = /\x1b\[([\d;?]*)([A-Za-z])|(\r?\n)|\r|([^\x1b\r\n]+)/g

export const hasPython = (): boolean => spawnSync('python3', ['-c', 'import pty']).status === 0

/** A command on a terminal of its own, as a person sees it. */
export class PseudoTerminal {
  /** Everything that was written to the terminal, escapes and all. */
  written = ''
  readonly ended: Promise<number | null>
  readonly #child: ChildProcess

  constructor(command: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}) {
    const { NO_COLOR: _, CI: __, ...outside } = process.env
    this.#child = spawn('python3', ['-c', PTY, ...command], {
      cwd,
      env: { ...outside, TERM: 'xterm-256color', ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      this.written += chunk
    })
    this.ended = new Promise((resolve) => this.#child.on('close', resolve))
  }

  type(text: string): void {
    this.#child.stdin?.write(text)
  }

  kill(): void {
    this.#child.kill('SIGKILL')
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
