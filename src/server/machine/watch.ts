import { type FSWatcher, watch } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isEnvFile } from '../../sdk/project/env-files.ts'

/** An editor saves a file as several changes; this is longer than the time between them. */
const QUIET_MS = 30
const CODE = /\.(?:[cm]?[jt]s|tsx|jsx|json)$/
const isIgnored = (name: string): boolean => name.startsWith('.') || name === 'node_modules' || name === 'dist'

/** Calls back when code under a folder was saved. Watches folder by folder: recursive watching looks into node_modules too. */
export class CodeWatcher {
  readonly #onChange: () => void
  readonly #watchers = new Map<string, FSWatcher>()
  /** Files that have changed and are code only if the project says so. */
  readonly #unsure = new Set<string>()
  #others: () => readonly string[] = () => []
  #known: ReadonlySet<string> = new Set()
  #isChanged = false
  #quiet: NodeJS.Timeout | undefined
  #closed = false

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  async add(folder: string): Promise<void> {
    if (this.#closed || this.#watchers.has(folder)) return
    try {
      const watcher = watch(folder, (_, name) => this.#noticed(folder, name ?? ''))
      watcher.on('error', () => this.#remove(folder))
      this.#watchers.set(folder, watcher)
      for (const entry of await readdir(folder, { withFileTypes: true })) {
        if (entry.isDirectory() && !isIgnored(entry.name)) await this.add(join(folder, entry.name))
      }
    } catch {
      // Gone again before it could be watched.
      this.#remove(folder)
    }
  }

  /** Other files to watch, asked for whenever something has changed that is no module: globs may match new ones by then. */
  alsoWatch(files: () => readonly string[]): void {
    this.#others = files
    this.#known = new Set(files())
  }

  /** True if code has changed and the callback has not been called yet. */
  get isChanged(): boolean {
    return this.#isChanged
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#quiet)
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }

  #noticed(folder: string, name: string): void {
    if (isIgnored(name) && !isEnvFile(name)) return
    if (CODE.test(name) || isEnvFile(name)) {
      this.#isChanged = true
      clearTimeout(this.#quiet)
    } else {
      // A name without an ending may be a folder that has just been made or removed.
      if (!name.includes('.')) void this.add(join(folder, name))
      this.#unsure.add(join(folder, name))
      // Programs may write files all the time, and must not put off what changed before.
      if (this.#quiet !== undefined) return
    }
    this.#quiet = setTimeout(() => this.#decide(), QUIET_MS)
  }

  #decide(): void {
    this.#quiet = undefined
    const before = this.#known
    if (!this.#isChanged && this.#unsure.size > 0) this.#known = new Set(this.#others())
    // A file that was removed matches no more, but did before.
    const isChanged = this.#isChanged || [...this.#unsure].some((file) => before.has(file) || this.#known.has(file))
    this.#unsure.clear()
    this.#isChanged = false
    if (isChanged) this.#onChange()
  }

  #remove(folder: string): void {
    this.#watchers.get(folder)?.close()
    this.#watchers.delete(folder)
  }
}
