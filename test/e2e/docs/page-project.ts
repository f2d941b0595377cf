import { execFile, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { main } from '../../../src/cli/main.ts'
import { Servo, shell } from '../support/servo.ts'
import { type CommandStep, wordsOf } from './pages.ts'

interface Said {
  readonly code: number
  readonly output: string
}

/** Commands that work without a server, or are told about it by themselves. */
const ALONE = ['init', 'check', 'doctor', 'cron', 'completion', 'dev', 'restore', '--version', '--help', 'help']

/**
 * The project that a page tells of. Its commands run in this process, asked of a `servo dev` that is started once: a process per
 * command would take most of the time of the tests.
 */
export class PageProject {
  #dir: string
  #dev: Servo | undefined

  constructor(dir: string) {
    this.#dir = dir
  }

  /** Saves a file as an editor does. A server that runs has loaded it before the next step. */
  async save(file: string, text: string): Promise<void> {
    const before = this.#dev?.shown.length ?? 0
    const at = path.join(this.#dir, file)
    fs.mkdirSync(path.dirname(at), { recursive: true })
    fs.writeFileSync(at, text)
    if (/^assets\/.*(?<!\.test)\.ts$/.test(file)) await this.#dev?.says(/loaded/, before)
  }

  /** Does a step as a reader would who types it. */
  async run({ command }: CommandStep): Promise<Said> {
    const words = wordsOf(command)
    if (words === undefined) {
      await this.#ready()
      return joined(await shell(command.replaceAll('npx servo', 'servo'), this.#dir))
    }
    const [program = '', ...args] = words[0] === 'npx' ? words.slice(words[1] === '--package' ? 3 : 1) : words
    if (program === 'cd') {
      this.#dir = path.resolve(this.#dir, args[0] ?? '')
      return { code: 0, output: '' }
    }
    if (program === 'npm' && args[0] === 'test') return await this.#tests()
    // A reader has stopped the server by now, as the page says.
    if (program === 'mv' && args[0] === '.servo') await this.end()
    if (program !== 'servo') return joined(await shell(this.#reached(command), this.#dir))
    // Packages are there already; to install them takes a network.
    if (args[0] === 'init') return await this.#inProcess([...args, '--no-install'])
    if (!ALONE.includes(args[0] ?? '')) await this.#ready()
    if (args[0] === 'dev') {
      await this.#ready()
      return { code: 0, output: this.#dev?.shown ?? '' }
    }
    return await this.#inProcess(args)
  }

  /** Pages name the port that a server usually has; this one has any that is free. */
  #reached(command: string): string {
    return this.#dev === undefined ? command : command.replaceAll('http://127.0.0.1:4400', this.#dev.url)
  }

  async #ready(): Promise<void> {
    if (this.#dev !== undefined) return
    // Pages show a config only if it matters.
    const config = path.join(this.#dir, 'servo.config.ts')
    if (!fs.existsSync(config)) fs.writeFileSync(config, CONFIG)
    // One worker process is enough for a page.
    this.#dev = new Servo(['dev', '--port', '0', '--concurrency', '1'], { cwd: this.#dir })
    await this.#dev.says(/ready in \d+ ms|error:/)
    if (this.#dev.shown.includes('error:')) throw new Error(this.#dev.shown)
  }

  /** As `npm test` runs them, in one process. */
  async #tests(): Promise<Said> {
    const child = spawn(process.execPath, ['--test', '--test-isolation=none'], {
      cwd: this.#dir,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk
      })
    }
    const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
    return { code: code ?? 1, output }
  }

  async #inProcess(args: readonly string[]): Promise<Said> {
    const before = { dir: process.cwd(), out: process.stdout.write, error: process.stderr.write }
    let output = ''
    const keep = (chunk: string | Uint8Array): boolean => {
      output += typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk)
      return true
    }
    Object.assign(process.stdout, { write: keep })
    Object.assign(process.stderr, { write: keep })
    process.chdir(this.#dir)
    process.exitCode = 0
    try {
      await main(args)
    } finally {
      Object.assign(process.stdout, { write: before.out })
      Object.assign(process.stderr, { write: before.error })
      process.chdir(before.dir)
    }
    const code = Number(process.exitCode)
    process.exitCode = 0
    return { code, output }
  }

  async end(): Promise<void> {
    this.#dev?.kill('SIGINT')
    await this.#dev?.ended
    this.#dev = undefined
  }
}

const CONFIG = `import { defineConfig } from 'servo-flow'
export default defineConfig({ project: 'page', dirs: ['assets'] })
`

const joined = ({ code, stdout, stderr }: { code: number | null; stdout: string; stderr: string }): Said => ({
  code: code ?? 1,
  output: stdout + stderr,
})

/** Types of all pages at once: the compiler reads the sources of the package only once. */
export async function compiled(dir: string, root: string): Promise<string> {
  const options = {
    extends: path.join(root, 'template/tsconfig.json'),
    compilerOptions: {
      paths: {
        'servo-flow': [path.join(root, 'src/index.ts')],
        'servo-flow/test': [path.join(root, 'src/test.ts')],
        'servo-flow/client': [path.join(root, 'src/client/index.ts')],
      },
      typeRoots: [path.join(root, 'node_modules/@types')],
    },
    include: ['*/**/*.ts'],
  }
  fs.writeFileSync(path.join(dir, 'tsconfig.json'), JSON.stringify(options))
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
  try {
    await promisify(execFile)(process.execPath, [tsc, '-p', dir, '--pretty', 'false'])
    return ''
  } catch (error) {
    return String((error as { stdout?: string }).stdout ?? error)
  }
}

/** What differs from run to run: ids, times, durations, and the spaces between columns. */
const loosely = (line: string): string =>
  line
    .replaceAll(/run_\w+/g, 'run_…')
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?/g, '<time>')
    .replaceAll(/\b\d\d:\d\d:\d\d\b/g, '<time>')
    .replaceAll(/\b\d[\d.,]* (?:ms|s|min)\b/g, '<duration>')
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:<port>')
    .replaceAll(/\s+/g, ' ')
    .trim()

/** Lines of a transcript that the command did not print. `…` stands for anything, within a line or for lines. */
export function linesMissing(shown: string, output: string): readonly string[] {
  const printed = output.split('\n').map(loosely)
  return shown
    .split('\n')
    .map(loosely)
    .filter((line) => line !== '' && line !== '…')
    .filter((line) => {
      const pattern = new RegExp(`^${line.split('…').map(RegExp.escape).join('.*')}$`)
      return !printed.some((each) => pattern.test(each))
    })
}
