import { type FSWatcher, watch } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** An editor saves a file as several changes; this is longer than the time between them. */
const QUIET_MS = 30
const CODE = /\.(?:[cm]?[jt]s|tsx|jsx|json)$/
const isIgnored = (name: string): boolean => name.startsWith('.') || name === 'node_modules' || name === 'dist'

/** Calls back when code under a folder was saved. Watches folder by folder: recursive watching looks into node_modules too. */
export class CodeWatcher {
  readonly #onChange: () => void
  readonly #watchers = new Map<string, FSWatcher>()
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

  close(): void {
    this.#closed = true
    clearTimeout(this.#quiet)
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }

  #noticed(folder: string, name: string): void {
    if (isIgnored(name)) return
    // A name without an ending may be a folder that has just been made or removed.
    if (!CODE.test(name)) {
      if (!name.includes('.')) void this.add(join(folder, name))
      return
    }
    clearTimeout(this.#quiet)
    this.#quiet = setTimeout(this.#onChange, QUIET_MS)
  }

  #remove(folder: string): void {
    this.#watchers.get(folder)?.close()
    this.#watchers.delete(folder)
  }
}
