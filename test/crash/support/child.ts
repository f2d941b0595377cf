import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Workload } from './workload.ts'

const program = join(import.meta.dirname, 'workload.ts')

/** A process that runs the workload, and what it has said so far. */
export class Child {
  readonly acknowledged: string[] = []
  readonly reopened: string[] = []
  published = 0
  failure: string | undefined
  readonly ended: Promise<void>
  readonly #process: ChildProcess
  #listeners: (() => void)[] = []
  #isReady = false
  #isOver = false

  constructor(workload: Workload) {
    this.#process = spawn(process.execPath, [program, JSON.stringify(workload)], { stdio: ['pipe', 'pipe', 'inherit'] })
    // A child that is killed before it was told to begin closes the pipe under our hand.
    this.#process.stdin!.on('error', () => undefined)
    this.ended = new Promise((resolve) => this.#process.once('close', () => resolve()))
    void this.ended.then(() => {
      this.#isOver = true
      this.#tell()
    })
    let rest = ''
    this.#process.stdout!.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      // What follows the last line end was cut off by the kill: nobody was told.
      rest = lines.pop()!
      for (const line of lines) this.#hear(line)
      this.#tell()
    })
  }

  #hear(line: string): void {
    const [word, ...rest] = line.split(' ')
    if (word === 'ready') this.#isReady = true
    else if (word === 'acknowledged') this.acknowledged.push(...rest)
    else if (word === 'published') this.published += 1
    else if (word === 'reopened') this.reopened.push(rest.join(' '))
    else this.failure = line
  }

  #tell(): void {
    for (const listener of this.#listeners.splice(0)) listener()
  }

  /** Resolves when this is so. A child that fails or ends before that is an error. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.failure !== undefined) throw new Error(`the child failed: ${this.failure}`)
      if (this.#isOver) throw new Error('the child ended early')
      await new Promise<void>((resolve) => this.#listeners.push(resolve))
    }
  }

  async begin(): Promise<void> {
    await this.until(() => this.#isReady)
    this.#process.stdin!.write('go\n')
  }

  freeze(): void {
    this.#process.kill('SIGSTOP')
  }

  thaw(): void {
    this.#process.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.ended
  }
}
