import { readFileSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ServoError } from '../../lib/error.ts'

interface Holder {
  readonly pid: number
  /** When the process began, as the kernel counts: a number that was given to another process since is not the same one. */
  readonly since: string | null
  readonly url?: string | undefined
}

/** One process per folder. Held by a file; a holder that is gone, however it went, holds nothing. */
export class ProcessLock {
  readonly #file: string
  #holder: Holder

  private constructor(file: string, holder: Holder) {
    this.#file = file
    this.#holder = holder
  }

  static async take(file: string): Promise<ProcessLock> {
    await mkdir(dirname(file), { recursive: true })
    const own: Holder = { pid: process.pid, since: startOf(process.pid) }
    for (;;) {
      try {
        await writeFile(file, JSON.stringify(own), { flag: 'wx' })
        return new ProcessLock(file, own)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const holder = await holderOf(file)
      if (holder !== undefined && isAlive(holder)) throw alreadyRunning(holder)
      // Set aside by one of those who found it, and only once: whoever is slower finds nothing to set aside.
      const aside = `${file}.${process.pid}`
      await rename(file, aside).catch(() => undefined)
      await rm(aside, { force: true })
    }
  }

  /** Tells others where this process can be spoken to. */
  async announce(url: string): Promise<void> {
    this.#holder = { ...this.#holder, url }
    const next = `${this.#file}.${process.pid}`
    await writeFile(next, JSON.stringify(this.#holder))
    await rename(next, this.#file)
  }

  async release(): Promise<void> {
    const holder = await holderOf(this.#file)
    if (holder?.pid === this.#holder.pid && holder.since === this.#holder.since) await rm(this.#file, { force: true })
  }
}

/** Where the process that holds a folder can be spoken to; undefined when none holds it or it does not listen yet. */
export async function urlOfHolder(file: string): Promise<string | undefined> {
  const holder = await holderOf(file)
  return holder !== undefined && isAlive(holder) ? holder.url : undefined
}

async function holderOf(file: string): Promise<Holder | undefined> {
  try {
    const holder = JSON.parse(await readFile(file, 'utf8')) as Holder
    return Number.isInteger(holder.pid) ? holder : undefined
  } catch {
    return undefined
  }
}

function isAlive({ pid, since }: Holder): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  return since === null || startOf(pid) === since
}

/**
 * The 22nd field of the process's line in /proc; null where there is none, and for a process that has ended and is only still
 * listed, because whoever started it never asked how: in containers often for ever.
 */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return state === 'Z' ? null : (fields[18] ?? null)
  } catch {
    return null
  }
}

function alreadyRunning({ pid, url }: Holder): ServoError {
  const where = url === undefined ? '' : ` at ${url}`
  return new ServoError('conflict', 'already_running', `process ${pid} runs this project already${where}`, {
    hint: 'Use it (servo run …), or stop it first.',
    facts: { pid, url },
  })
}
