import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { bundle } from '../../scripts/bundle.ts'
import { atEnd } from './ending.ts'
import { scratchFolder } from './scratch.ts'

const root = path.resolve(import.meta.dirname, '../..')

/** The package as users have it: bundled, because Node strips types anew at each start. */
export async function builtServo(): Promise<string> {
  const folder = scratchFolder('package')
  for (const { name, code } of await bundle()) {
    const file = path.join(folder, 'dist', name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, code)
  }
  cpSync(path.join(root, 'package.json'), path.join(folder, 'package.json'))
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  return path.join(folder, 'dist/cli/bin.js')
}

/** A fresh copy of the shop, which nobody has ever run. */
export function shop(): string {
  const folder = scratchFolder('shop')
  const from = path.join(root, 'examples/shop')
  cpSync(from, folder, { recursive: true, filter: (file) => !path.relative(from, file).startsWith('.') })
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  return folder
}

/** A line of `servo dev --json`. */
export interface Said {
  readonly type: string
  readonly ok?: boolean
  readonly url?: string
  readonly run?: { readonly state: string; readonly finished_at: string | null }
  readonly task?: { readonly state: string }
}

/** `servo dev` in a process of its own. */
export class ServoDev {
  readonly pid: number
  readonly #child: ChildProcess
  readonly #gone: Promise<number | null>
  readonly #said: Said[] = []
  readonly #listeners = new Set<(said: Said) => void>()

  constructor(main: string, project: string, ...args: string[]) {
    // A group of its own: Ctrl-C in a terminal is for the benchmark, which passes it on once.
    this.#child = spawn(process.execPath, [main, 'dev', '--json', '--port', '0', '--project', project, ...args], {
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.pid = this.#child.pid as number
    this.#gone = new Promise((resolve) => this.#child.once('exit', resolve))
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const said = JSON.parse(line) as Said
      this.#said.push(said)
      for (const listener of this.#listeners) listener(said)
    })
    atEnd(() => this.stop())
  }

  /** Resolves when it says, or has said, such a thing. */
  hears(what: (said: Said) => boolean): Promise<Said> {
    const before = this.#said.find(what)
    if (before !== undefined) return Promise.resolve(before)
    return new Promise((resolve, reject) => {
      const listener = (said: Said): void => {
        if (!what(said)) return
        this.#listeners.delete(listener)
        resolve(said)
      }
      this.#listeners.add(listener)
      void this.#gone.then((code) => reject(new Error(`servo dev has ended with ${code}`)))
    })
  }

  /** What it said so far is not heard again. */
  forget(): void {
    this.#said.length = 0
  }

  /** Ctrl-C. Resolves when the process is gone, with its exit code; null when the signal itself has ended it. */
  async stop(): Promise<number | null> {
    this.#child.kill('SIGINT')
    return await this.#gone
  }
}
