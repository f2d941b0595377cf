import type { LogEntry } from '../../contract/pipe.ts'
import type { Paths } from '../../engine/paths.ts'
import { SECOND_MS } from '../../lib/time.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'

export interface AttemptLogsOptions {
  readonly store: ObjectStore
  readonly paths: Paths
  readonly clock: AlarmClock
  readonly onError: (error: unknown) => void
}

/** `first` is how many entries of the attempt came before these. */
type LogListener = (said: { task_key: string; attempt: number; first: number; entries: readonly LogEntry[] }) => void

/** Names one attempt. */
export interface AttemptRef {
  readonly run_id: string
  readonly task_key: string
  readonly attempt: number
  readonly attempt_id: string
}

interface Writing {
  readonly runId: string
  readonly sinceMs: number
  lines: string[]
  bytes: number
  entries: number
  part: number
  last: Promise<unknown>
}

/** How long lines wait for others before they are stored; listeners receive them at once. */
const FLUSH_AFTER_MS = SECOND_MS
const FLUSH_AT_BYTES = 256 << 10

/** The output of attempts, stored in the object store a few lines at a time, and sent to listeners at once. */
export class AttemptLogs {
  readonly #options: AttemptLogsOptions
  readonly #writing = new Map<string, Writing>()
  readonly #listeners = new Map<string, Set<LogListener>>()
  readonly #storing = new Set<Promise<unknown>>()
  #alarm: (() => void) | undefined

  constructor(options: AttemptLogsOptions) {
    this.#options = options
  }

  add({ run_id: runId, task_key, attempt, attempt_id: attemptId }: AttemptRef, entries: readonly LogEntry[]): void {
    let log = this.#writing.get(attemptId)
    if (log === undefined) {
      log = { runId, sinceMs: this.#options.clock.now(), lines: [], bytes: 0, entries: 0, part: 0, last: Promise.resolve() }
      this.#writing.set(attemptId, log)
    }
    for (const entry of entries) {
      const line = JSON.stringify(entry)
      log.lines.push(line)
      log.bytes += line.length
    }
    const said = { task_key, attempt, first: log.entries, entries }
    log.entries += entries.length
    for (const listener of this.#listeners.get(runId) ?? []) listener(said)
    if (log.bytes >= FLUSH_AT_BYTES) this.#flush(attemptId, log)
    this.#alarm ??= this.#options.clock.after(FLUSH_AFTER_MS, () => this.#flushAll())
  }

  /** Call when the attempt has ended: it prints nothing more. */
  end(attemptId: string): void {
    const log = this.#writing.get(attemptId)
    if (log === undefined) return
    this.#flush(attemptId, log)
    this.#writing.delete(attemptId)
  }

  /** Calls the listener with everything that attempts of a run print from now on. The function it returns ends that. */
  follow(runId: string, listener: LogListener): () => void {
    const listeners = this.#listeners.get(runId) ?? new Set()
    this.#listeners.set(runId, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.#listeners.delete(runId)
    }
  }

  /** Resolves when everything that attempts of a run have printed until now can be read. */
  async stored(runId: string): Promise<void> {
    for (const [attemptId, log] of this.#writing) if (log.runId === runId) this.#flush(attemptId, log)
    await Promise.all(this.#storing)
  }

  async close(): Promise<void> {
    this.#flushAll()
    this.#alarm?.()
    await Promise.all(this.#storing)
  }

  #flushAll(): void {
    this.#alarm = undefined
    for (const [attemptId, log] of this.#writing) this.#flush(attemptId, log)
    if ([...this.#writing.values()].some((log) => log.bytes > 0)) {
      this.#alarm = this.#options.clock.after(FLUSH_AFTER_MS, () => this.#flushAll())
    }
  }

  #flush(attemptId: string, log: Writing): void {
    if (log.lines.length === 0) return
    const { store, paths, onError } = this.#options
    const bytes = new TextEncoder().encode(`${log.lines.join('\n')}\n`)
    const path = paths.attemptLog(log.runId, attemptId, log.sinceMs, log.part)
    log.lines = []
    log.bytes = 0
    log.part += 1
    const stored = log.last.then(() => store.put(path, bytes)).catch(onError)
    log.last = stored
    this.#storing.add(stored)
    void stored.then(() => this.#storing.delete(stored))
  }
}

/** The stored output of one attempt, oldest first. */
export async function* readAttemptLog(
  store: ObjectStore,
  paths: Paths,
  runId: string,
  attemptId: string,
): AsyncGenerator<LogEntry> {
  for await (const { path } of store.list(paths.attemptLogs(runId, attemptId))) {
    const bytes = await store.get(path)
    if (bytes === undefined) continue
    for (const line of new TextDecoder().decode(bytes).split('\n')) if (line !== '') yield JSON.parse(line) as LogEntry
  }
}
