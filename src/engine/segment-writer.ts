import { isServoError, ServoError } from '../lib/error.ts'
import { MINUTE_MS } from '../lib/time.ts'
import { type UlidSource, ulidTime } from '../lib/ulid.ts'
import type { Clock } from '../ports/clock.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import type { Paths } from './paths.ts'
import { encodeSegment } from './segment.ts'

/** What becomes one segment: the canonical text of each of its events. */
export interface Batch {
  readonly texts: readonly string[]
}

/** Who has something to write. The writer asks it for the next batch when the one before is durable. */
export interface SegmentOwner<B extends Batch> {
  /** Awaited before the first batch is taken and after each write: what came meanwhile goes into the next one. */
  prepare?(): Promise<void>
  /** The next batch, if there is one. */
  take(): B | undefined
  /** From now on the batch may be found in the ledger under this name, and no longer counts under the one before. */
  named?(batch: B, ulid: string): void
  /** The batch is durable under this name. */
  written(batch: B, ulid: string): void
  /** The batch was given up. An attempt of which nobody heard may have got through. */
  failed(batch: B, error: unknown): void
}

export interface SegmentWriterOptions {
  readonly store: ObjectStore
  readonly paths: Paths
  readonly clock: Clock
  readonly ulid: UlidSource
  /** How often a write is tried before the batch is given up. */
  readonly maxAttempts?: number
}

/** A name this old may lie where nobody expects anything new any more. */
export const REMINT_AFTER_MS = MINUTE_MS
const MAX_ATTEMPTS = 5

type Outcome = { readonly ulid: string } | { readonly error: unknown }

/**
 * Writes segments for everybody who appends, and keeps the laws of the ledger: one write is in flight, in order; a write with
 * an unknown outcome is tried again under the same name with the same bytes; finding those bytes there is success, finding
 * others means a new name; and no name is written that is older than a minute.
 */
export class SegmentWriter<B extends Batch> {
  readonly #options: SegmentWriterOptions
  readonly #owner: SegmentOwner<B>
  #running = Promise.resolve()
  #isBusy = false
  #isWriting = false

  constructor(options: SegmentWriterOptions, owner: SegmentOwner<B>) {
    this.#options = options
    this.#owner = owner
  }

  /** True while a segment is being written at this moment. */
  get isWriting(): boolean {
    return this.#isWriting
  }

  /** True until there is nothing more to write and everybody has heard. */
  get isBusy(): boolean {
    return this.#isBusy
  }

  /** There may be something to write. */
  wake(): void {
    if (this.#isBusy) return
    this.#isBusy = true
    this.#running = this.#run()
  }

  /** Resolves when there is nothing to write any more. */
  async idle(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    try {
      // Without anything to prepare, the first write goes out at once.
      if (this.#owner.prepare !== undefined) await this.#owner.prepare()
      for (let writing = this.#begin(); writing !== undefined; ) {
        const outcome = await writing.outcome
        this.#isWriting = false
        await this.#owner.prepare?.()
        // The disk has its next before anybody hears of this one: what they do then takes as long as a write.
        const next = 'ulid' in outcome ? this.#begin() : undefined
        if ('ulid' in outcome) this.#owner.written(writing.batch, outcome.ulid)
        else this.#owner.failed(writing.batch, outcome.error)
        if (next === undefined) await this.#owner.prepare?.()
        writing = next ?? this.#begin()
      }
    } finally {
      this.#isBusy = false
    }
  }

  #begin(): { batch: B; outcome: Promise<Outcome> } | undefined {
    const batch = this.#owner.take()
    if (batch === undefined) return undefined
    this.#isWriting = true
    const outcome = this.#write(batch).then(
      (ulid) => ({ ulid }),
      (error: unknown) => ({ error }),
    )
    return { batch, outcome }
  }

  async #write(batch: B): Promise<string> {
    const { clock, maxAttempts = MAX_ATTEMPTS } = this.#options
    let named = this.#name(batch)
    for (let attempt = 1; ; attempt++) {
      if (clock.now() - ulidTime(named.ulid) > REMINT_AFTER_MS) {
        // An earlier try may have got through although nobody heard of it: then this is where the segment is.
        if (attempt > 1 && (await this.#holds(named).catch(() => false))) return named.ulid
        named = this.#name(batch)
      }
      const outcome = await this.#create(named)
      if (outcome === 'written') return named.ulid
      const error = outcome === 'taken' ? nameTaken(named.path) : outcome.error
      if (attempt >= maxAttempts || !isServoError(error, 'unavailable')) throw error
      if (outcome === 'taken') named = this.#name(batch)
      else await clock.sleep(backoffMs(attempt))
    }
  }

  #name(batch: B): Named {
    const ulid = this.#options.ulid()
    this.#owner.named?.(batch, ulid)
    return { ulid, path: this.#options.paths.segment(ulid), bytes: encodeSegment(ulid, batch.texts) }
  }

  /** A write that timed out may have succeeded; its retry then finds its own bytes there, and that is success. */
  async #create(named: Named): Promise<'written' | 'taken' | { error: unknown }> {
    try {
      if ((await this.#options.store.create(named.path, named.bytes)) === 'written') return 'written'
      return (await this.#holds(named)) ? 'written' : 'taken'
    } catch (error) {
      return { error }
    }
  }

  async #holds({ path, bytes }: Named): Promise<boolean> {
    const found = await this.#options.store.get(path)
    return found !== undefined && Buffer.compare(found, bytes) === 0
  }
}

interface Named {
  readonly ulid: string
  readonly path: string
  readonly bytes: Uint8Array
}

/** How long to wait before the next try of a write. */
const backoffMs = (attempt: number): number => Math.min(2_000, 25 * 2 ** attempt)

const nameTaken = (path: string): ServoError =>
  new ServoError('unavailable', 'name_taken', `${path} is another segment, as were the names tried before it`, {
    hint: 'Two processes make the same ids. Start one of them anew.',
    facts: { path },
  })
