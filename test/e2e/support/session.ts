import { type ChildProcess, fork } from 'node:child_process'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { inject } from 'vitest'
import type { Ran } from './servo.ts'

/**
 * One process of the built package that runs command after command, as a process for each would, for tests of many commands that end at once.
 * Not for commands that handle signals, or that wait.
 */
export class Session {
  readonly #child: ChildProcess
  readonly #ready: Promise<void>
  #last = Promise.resolve<unknown>(undefined)

  constructor() {
    const main = pathToFileURL(path.join(path.dirname(inject('servoMain')), 'main.js')).href
    this.#child = fork(path.join(import.meta.dirname, 'session-process.mjs'), [main], {
      execArgv: [],
      env: { ...process.env, NO_COLOR: '1' },
    })
    this.#ready = new Promise((resolve) => this.#child.once('message', () => resolve()))
  }

  /** Runs a command in a folder, after those before it. */
  async servo(cwd: string, ...args: readonly string[]): Promise<Ran> {
    const ran = this.#last.then(() => this.#run(cwd, args))
    this.#last = ran.catch(() => undefined)
    return await ran
  }

  async #run(cwd: string, args: readonly string[]): Promise<Ran> {
    await this.#ready
    return await new Promise((resolve, reject) => {
      const gone = (): void => reject(new Error(`servo ${args.join(' ')} ended the process`))
      this.#child.once('exit', gone)
      this.#child.once('message', (answer: Ran) => {
        this.#child.off('exit', gone)
        resolve({ code: answer.code, stdout: answer.stdout, stderr: answer.stderr })
      })
      this.#child.send({ cwd, args })
    })
  }

  end(): void {
    this.#child.disconnect()
  }

  /** Lets the process of the tests end without it; it ends with them. */
  unref(): void {
    this.#child.unref()
    this.#child.channel?.unref()
  }
}

let asking: Session | undefined

/** Asks a question of a project in a process that all tests of this process share. */
export async function asked(cwd: string, ...args: readonly string[]): Promise<Ran> {
  if (asking === undefined) {
    asking = new Session()
    asking.unref()
  }
  return await asking.servo(cwd, ...args)
}
