import { mkdirSync, readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { isUtcDay } from '../../lib/time.ts'
import { isUlid } from '../../lib/ulid.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { Listener, Listening, Notifier } from '../../ports/notifier.ts'
import { OWN_FOLDER, undefinedIfMissing } from './disk.ts'
import { type WatchFolder, watchFolder } from './folder-watch.ts'

export interface FsNotifierOptions {
  readonly clock: AlarmClock
  /** `off` if other machines share the folder: a watch does not report their changes. Network file systems are recognised without it. */
  readonly watch?: WatchFolder | 'off'
}

const SEGMENT_FILE = /^(.{26})\.json$/
/** The obstacle, such as too many watches, may be gone by then; until then the listener lists the ledger itself. */
const RETRY_MS = 10_000
/** Linux drops events beyond 16,384 that were not read, and Node does not report it. */
const MANY_AT_ONCE = 8_192

/**
 * Finds segments by watching the folder of the ledger and every folder of a day in it, old ones too: a process whose clock is
 * wrong writes there. Announcing a segment costs nothing: other processes see the file as soon as it has its name.
 */
export function fsNotifier(ledger: string, { clock, watch = watchFolder }: FsNotifierOptions): Notifier {
  return {
    announce: () => undefined,
    async listen(listener) {
      if (watch === 'off') return { missesNothing: false, close: () => undefined }
      return new FolderListening(resolve(ledger), listener, { clock, watch })
    },
  }
}

/** Watching, blind until the next try, or closed. */
class FolderListening implements Listening {
  readonly #ledger: string
  readonly #listener: Listener
  readonly #options: { readonly clock: AlarmClock; readonly watch: WatchFolder }
  /** By day; the ledger itself is the empty name. */
  readonly #watches = new Map<string, () => void>()
  readonly #appeared = new Set<string>()
  #state: 'watching' | 'blind' | 'closed' = 'blind'
  #cancelRetry: (() => void) | undefined
  #flush: NodeJS.Immediate | undefined
  #events = 0

  constructor(ledger: string, listener: Listener, options: { clock: AlarmClock; watch: WatchFolder }) {
    this.#ledger = ledger
    this.#listener = listener
    this.#options = options
    this.#begin()
  }

  get missesNothing(): boolean {
    return this.#state === 'watching'
  }

  close(): void {
    this.#state = 'closed'
    this.#unwatch()
  }

  #begin(): void {
    this.#state = 'watching'
    try {
      mkdirSync(this.#ledger, { recursive: true, mode: OWN_FOLDER })
      this.#watch('', (name) => this.#dayChanged(name))
      // After the watch: every day that appears from here on is noticed.
      for (const name of readdirSync(this.#ledger)) if (isUtcDay(name)) this.#watchDay(name)
    } catch {
      this.#goBlind()
    }
  }

  #watch(day: string, changed: (name: string | null) => void): void {
    if (this.#state !== 'watching') return
    const stop = this.#options.watch(
      `${this.#ledger}/${day}`,
      (name) => this.#state === 'watching' && changed(name),
      () => this.#goBlind(),
    )
    if (stop === undefined) this.#goBlind()
    else this.#watches.set(day, stop)
  }

  #watchDay(day: string): void {
    this.#watch(day, (name) => this.#segmentAppeared(name))
  }

  /** A day was made, removed, or both, so that an old watch would look at a folder that does not exist any more. */
  #dayChanged(name: string | null): void {
    if (name === null) this.#listener.onMissed()
    if (name === null || !isUtcDay(name)) return
    this.#watches.get(name)?.()
    this.#watches.delete(name)
    try {
      if (this.#segmentsOf(name) === undefined) return
      this.#watchDay(name)
      // These segments were written before there was a watch. A segment that comes between the two is reported twice.
      for (const segment of this.#segmentsOf(name) ?? []) this.#segmentAppeared(segment)
    } catch {
      this.#goBlind()
    }
  }

  #segmentsOf(day: string): string[] | undefined {
    try {
      return readdirSync(`${this.#ledger}/${day}`)
    } catch (error) {
      return undefinedIfMissing(error)
    }
  }

  #segmentAppeared(name: string | null): void {
    if (name === null) this.#listener.onMissed()
    this.#events += 1
    const ulid = SEGMENT_FILE.exec(name ?? '')?.[1]
    if (ulid !== undefined && isUlid(ulid)) this.#appeared.add(ulid)
    // All events of one turn of the event loop are reported in one call.
    this.#flush ??= setImmediate(() => this.#report())
  }

  #report(): void {
    const [segments, events] = [[...this.#appeared], this.#events]
    this.#flush = undefined
    this.#events = 0
    this.#appeared.clear()
    if (segments.length > 0) this.#listener.onSegments(segments)
    if (events >= MANY_AT_ONCE) this.#listener.onMissed()
  }

  #goBlind(): void {
    if (this.#state !== 'watching') return
    this.#state = 'blind'
    this.#unwatch()
    this.#listener.onMissed()
    this.#cancelRetry = this.#options.clock.after(RETRY_MS, () => {
      this.#begin()
      if (this.missesNothing) this.#listener.onMissed()
    })
  }

  #unwatch(): void {
    this.#cancelRetry?.()
    if (this.#flush !== undefined) clearImmediate(this.#flush)
    this.#flush = undefined
    for (const stop of this.#watches.values()) stop()
    this.#watches.clear()
  }
}
