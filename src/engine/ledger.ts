import { isServoError, ServoError } from '../lib/error.ts'
import { MINUTE_MS } from '../lib/time.ts'
import { ulidTime } from '../lib/ulid.ts'
import type { Envelope } from '../model/envelope.ts'
import type { NewEvent } from '../model/event.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import { type MintOptions, mintEvents, type SizeLimits, sizeLimits } from './mint.ts'
import { checkScope, Paths } from './paths.ts'
import { encodeSegment, type Segment } from './segment.ts'
import { backoffMs, createOnce, holds } from './segment-writer.ts'

export interface Appended {
  readonly segment: string
  readonly events: readonly Envelope[]
}

export interface LedgerOptions extends MintOptions {
  readonly store: ObjectStore
  readonly limits?: Partial<LedgerLimits>
  /** Told of every durable segment, before its appends are acknowledged. */
  readonly onDurable?: (segment: Segment) => void
}

export interface LedgerLimits extends SizeLimits {
  /** What may wait for the write in flight before appends are refused. */
  readonly maxWaitingBytes: number
  /** How often a write with an unknown outcome is tried before the append fails. */
  readonly maxAttempts: number
}

const ledgerLimits: LedgerLimits = {
  ...sizeLimits,
  maxWaitingBytes: 128 << 20,
  maxAttempts: 5,
}

/** The oldest a segment's ULID may be when it is written: listings look back further than this, so none is missed. */
export const REMINT_AFTER_MS = MINUTE_MS

interface Waiting {
  readonly events: readonly Envelope[]
  readonly texts: readonly string[]
  readonly bytes: number
  resolve(appended: Appended): void
  reject(error: unknown): void
}

/**
 * Appends events, durably. One write is in flight at a time; whatever arrives meanwhile becomes the next segment, so
 * that an idle ledger adds no latency and a busy one makes fewer, larger segments by itself.
 */
export class Ledger {
  readonly #options: LedgerOptions
  readonly #limits: LedgerLimits
  readonly #paths: Paths
  #queue: Waiting[] = []
  #queuedBytes = 0
  #writing: Promise<void> | undefined

  constructor(options: LedgerOptions) {
    checkScope(options.scope)
    this.#options = options
    this.#limits = { ...ledgerLimits, ...options.limits }
    this.#paths = new Paths(options.scope)
  }

  /** Writes events as one atomic batch. Resolves when they are durable; throws without having written any if one is bad. */
  async append(events: readonly NewEvent[]): Promise<Appended> {
    const { events: envelopes, texts, bytes } = mintEvents(this.#options, this.#limits, events)
    if (this.#queuedBytes + bytes > this.#limits.maxWaitingBytes) {
      throw new ServoError('unavailable', 'ledger_busy', `${this.#queuedBytes} bytes are waiting to be written`, {
        hint: 'Slow down and try again.',
      })
    }
    return await new Promise<Appended>((resolve, reject) => {
      this.#queue.push({ events: envelopes, texts, bytes, resolve, reject })
      this.#queuedBytes += bytes
      this.#writing ??= this.#drain()
    })
  }

  /** Resolves when nothing is waiting any more. */
  async flush(): Promise<void> {
    await this.#writing
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#takeBatch()
      try {
        const segment = await this.#write(batch)
        this.#announce(segment)
        for (const waiting of batch) waiting.resolve({ segment: segment.ulid, events: waiting.events })
      } catch (error) {
        for (const waiting of batch) waiting.reject(error)
      }
    }
    this.#writing = undefined
  }

  #announce(segment: Segment): void {
    try {
      this.#options.onDurable?.(segment)
    } catch {
      // The segment is durable, so its appends succeed. Whoever failed to listen finds it by listing.
    }
  }

  #takeBatch(): Waiting[] {
    let bytes = 0
    let count = 0
    for (const waiting of this.#queue) {
      if (count > 0 && bytes + waiting.bytes > this.#limits.maxSegmentBytes) break
      bytes += waiting.bytes
      count += 1
    }
    this.#queuedBytes -= bytes
    return this.#queue.splice(0, count)
  }

  async #write(batch: readonly Waiting[]): Promise<Segment> {
    const { clock, store, ulid: mint } = this.#options
    const bytes = encodeSegment(batch.flatMap((waiting) => waiting.texts))
    const events = batch.flatMap((waiting) => waiting.events)
    let ulid = mint()
    for (let attempt = 1; ; attempt++) {
      if (clock.now() - ulidTime(ulid) > REMINT_AFTER_MS) {
        // An earlier try may have got through although nobody heard of it: then this is where the segment is.
        if (attempt > 1 && (await holds(store, this.#paths.segment(ulid), bytes).catch(() => false))) return { ulid, events }
        // A name that is too old might lie behind what listings still look at.
        ulid = mint()
      }
      const outcome = await createOnce(store, this.#paths.segment(ulid), bytes)
      if (outcome === 'written') return { ulid, events }
      if (outcome === 'taken') ulid = mint()
      else if (attempt >= this.#limits.maxAttempts || !isServoError(outcome.error, 'unavailable')) throw outcome.error
      else await clock.sleep(backoffMs(attempt))
    }
  }
}
