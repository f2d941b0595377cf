import { isServoError, ServoError } from '../../lib/error.ts'
import { MINUTE_MS, utcDay } from '../../lib/time.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'
import { type UlidSource, ulidAfter, ulidAt, ulidTime } from '../../lib/ulid.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { createOwn, holds } from '../files/create-own.ts'
import type { Paths } from '../paths.ts'
import { startOfDay } from './days.ts'
import { encodeSegment } from './segment.ts'
import type { Sequence } from './sequence.ts'

/** The content of one segment: the canonical text of each of its events. */
export interface Batch {
  readonly texts: readonly string[]
}

/** The owner of a writer. It is asked for the next batch when the one before is durable. */
export interface SegmentOwner<B extends Batch> {
  /** Awaited before the first batch is taken and after each write, so that what came meanwhile gets into the next one. */
  prepare?(): Promise<void>
  /** The next batch, if there is one. */
  take(): B | undefined
  /** From now on the batch may be found in the ledger under this name, and no longer counts under the one before. */
  named?(batch: B, ulid: string, sequence: Sequence): void
  /** The batch is durable under this name. */
  written(batch: B, ulid: string): void
  /** The batch was given up. An attempt whose answer was lost may have got through. */
  failed(batch: B, error: unknown): void
}

/** Which days of the ledger may be written to. A segment that is written to a closed day might never be read. */
export interface WritableDays {
  /** The first day from this one on that is open. */
  openFrom(day: string): string
  /** Reads which days are closed, unless it did so within the last `maxAgeMs`. Omitted by the leader, which closes days itself. */
  learn?(maxAgeMs: number): Promise<void>
}

export interface SegmentWriterOptions {
  readonly store: ObjectStore
  readonly paths: Paths
  readonly clock: Clock
  readonly ulid: UlidSource
  readonly days: WritableDays
  /** How often a write is tried before the batch is given up. */
  readonly maxAttempts?: number
}

/** A name older than this may lie where readers no longer expect new segments. */
export const REMINT_AFTER_MS = MINUTE_MS
/** Before a write, what is known of closed days may be this old: it only saves writing twice. After a write it must be current. */
const LEARN_EVERY_MS = MINUTE_MS
const MAX_ATTEMPTS = 5

type Outcome = { readonly ulid: string } | { readonly error: unknown }

type WriterState = 'idle' | 'preparing' | 'writing'

/** Where each state may lead. An error that the owner throws leads to `idle`. */
const transitions: Transitions<WriterState> = {
  idle: ['preparing'],
  preparing: ['writing', 'idle'],
  writing: ['preparing', 'idle'],
}

/**
 * Writes segments for every process that appends, and keeps the laws of the ledger: one write is in flight, in order; a write with
 * an unknown outcome is tried again under the same name with the same bytes; finding those bytes there is success, finding
 * others means a new name; no name is written that is older than a minute, and nothing counts as written in a day that is closed.
 *
 * It numbers its segments, so that one that goes missing later leaves a gap. After a batch that was given up, which may or may not have
 * got through, it counts as another writer and begins anew.
 *
 * It is `idle` until it is woken; then it is `preparing` while its owner gets ready or handles a write, and `writing` while a segment
 * is on its way to the store, by turns until the owner has no more.
 */
export class SegmentWriter<B extends Batch> {
  readonly #options: SegmentWriterOptions
  readonly #owner: SegmentOwner<B>
  #running = Promise.resolve()
  #state: WriterState = 'idle'
  #lastName = ''
  /** The last segment that is durable. */
  #last: Sequence | undefined

  constructor(options: SegmentWriterOptions, owner: SegmentOwner<B>) {
    this.#options = options
    this.#owner = owner
  }

  /** True while a segment is being written. */
  get isWriting(): boolean {
    return this.#state === 'writing'
  }

  /** True until nothing is left to write and the owner has handled every write. */
  get isBusy(): boolean {
    return this.#state !== 'idle'
  }

  /** Wakes the writer: there may be something to write. */
  wake(): void {
    if (this.#state !== 'idle') return
    this.#enter('preparing')
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
        this.#enter('preparing')
        await this.#owner.prepare?.()
        // The next write starts before the owner handles this one, because the owner's reaction takes as long as a write.
        const next = 'ulid' in outcome ? this.#begin() : undefined
        if ('ulid' in outcome) this.#owner.written(writing.batch, outcome.ulid)
        else this.#owner.failed(writing.batch, outcome.error)
        if (next === undefined) await this.#owner.prepare?.()
        writing = next ?? this.#begin()
      }
    } finally {
      this.#enter('idle')
    }
  }

  #enter(next: WriterState): void {
    this.#state = transition('a writer', transitions, this.#state, next)
  }

  #begin(): { batch: B; outcome: Promise<Outcome> } | undefined {
    const batch = this.#owner.take()
    if (batch === undefined) return undefined
    this.#enter('writing')
    const outcome = this.#write(batch).then(
      (ulid) => ({ ulid }),
      (error: unknown) => {
        this.#last = undefined
        return { error }
      },
    )
    return { batch, outcome }
  }

  async #write(batch: B): Promise<string> {
    const { clock, days, maxAttempts = MAX_ATTEMPTS } = this.#options
    let named: Named | undefined
    for (let attempt = 1; ; attempt++) {
      let failure: unknown
      let isOutage = false
      try {
        if (named !== undefined && (await this.#isStale(named))) named = undefined
        if (named === undefined) {
          // The leader closes days itself and need not read them, so that its first write goes out at once.
          if (days.learn !== undefined) await days.learn(LEARN_EVERY_MS)
          named = this.#name(batch)
        }
        if (await this.#place(named)) {
          this.#last = named.sequence
          return named.ulid
        }
        failure = noPlace(named.path)
        named = undefined
      } catch (error) {
        failure = error
        isOutage = true
      }
      if (attempt >= maxAttempts || !isServoError(failure, 'unavailable')) throw failure
      if (isOutage) await clock.sleep(backoffMs(attempt))
    }
  }

  /** True if a name is too old to be written. If an earlier try got through unheard, the segment is there, and the name stays. */
  async #isStale(named: Named): Promise<boolean> {
    if (this.#options.clock.now() - ulidTime(named.ulid) <= REMINT_AFTER_MS) return false
    return !(await holds(this.#options.store, named.path, named.bytes).catch(() => false))
  }

  /** Writes a segment. True if readers will find it where it lies; only then may it be acknowledged. */
  async #place(named: Named): Promise<boolean> {
    const { store, days } = this.#options
    if (!(await createOwn(store, named.path, named.bytes))) return false
    if (days.learn === undefined) return true
    await days.learn(0)
    const day = utcDay(ulidTime(named.ulid))
    // If the leader has closed the day meanwhile, the segment is written under another name. The same events are the same facts.
    return days.openFrom(day) === day
  }

  #name(batch: B): Named {
    const ulid = this.#mint()
    const last = this.#last ?? { writer: ulid, number: 0 }
    const sequence = { ...last, number: last.number + 1 }
    this.#owner.named?.(batch, ulid, sequence)
    const { paths } = this.#options
    return { ulid, sequence, path: paths.segment(ulid), bytes: encodeSegment(ulid, batch.texts, sequence) }
  }

  /** Names grow, and belong to open days: if today is closed, to the first moment of the next open day. */
  #mint(): string {
    let ulid = this.#options.ulid()
    if (ulid <= this.#lastName) ulid = ulidAfter(this.#lastName)
    const day = utcDay(ulidTime(ulid))
    const open = this.#options.days.openFrom(day)
    if (open !== day) ulid = ulidAt(startOfDay(open), ulid)
    this.#lastName = ulid
    return ulid
  }
}

interface Named {
  readonly ulid: string
  readonly sequence: Sequence
  readonly path: string
  readonly bytes: Uint8Array
}

/** How long to wait before the next try of a write. */
const backoffMs = (attempt: number): number => Math.min(2_000, 25 * 2 ** attempt)

const noPlace = (path: string): ServoError =>
  new ServoError(
    'unavailable',
    'no_place',
    `${path} is another segment or lies in a day that is closed, as did the names before it`,
    {
      hint: "Try again. If that does not help, check this machine's clock.",
      facts: { path },
    },
  )
