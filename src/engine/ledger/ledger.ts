import { ServoError } from '../../lib/error.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { NewEvent } from '../../model/event.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { Paths } from '../paths.ts'
import { type MintOptions, mintEvents, type SizeLimits, sizeLimits } from './mint.ts'
import { PublishedDays } from './published-days.ts'
import type { Segment } from './segment.ts'
import { SegmentWriter } from './segment-writer.ts'

export interface Appended {
  readonly segment: string
  readonly events: readonly Envelope[]
}

export interface LedgerOptions extends MintOptions {
  readonly store: ObjectStore
  readonly limits?: Partial<LedgerLimits>
  /** Called with every durable segment, before its appends are acknowledged. */
  readonly onDurable?: (segment: Segment) => void
}

export interface LedgerLimits extends SizeLimits {
  /** Appends are refused while more than this waits for the write in flight. */
  readonly maxWaitingBytes: number
  /** How often a write with an unknown outcome is tried before the append fails. */
  readonly maxAttempts: number
}

const ledgerLimits: LedgerLimits = {
  ...sizeLimits,
  maxWaitingBytes: 128 << 20,
  maxAttempts: 5,
}

interface Waiting {
  readonly events: readonly Envelope[]
  readonly texts: readonly string[]
  readonly bytes: number
  resolve(appended: Appended): void
  reject(error: unknown): void
}

/** Appends that are written together. */
interface Group {
  readonly texts: readonly string[]
  readonly appends: readonly Waiting[]
}

/**
 * Appends events, durably. One write is in flight at a time; appends that arrive meanwhile become the next segment, so
 * that an idle ledger adds no latency and a busy one makes fewer, larger segments by itself.
 *
 * For processes that append without leading. The product has none yet: the leader appends through its `Loop`, and tests and benches
 * use this to be such a process. API processes beside the leader will.
 */
export class Ledger {
  readonly #options: LedgerOptions
  readonly #limits: LedgerLimits
  readonly #writer: SegmentWriter<Group>
  #queue: Waiting[] = []
  #queuedBytes = 0

  constructor(options: LedgerOptions) {
    this.#options = options
    this.#limits = { ...ledgerLimits, ...options.limits }
    const { store, clock, ulid, scope } = options
    const { maxAttempts } = this.#limits
    this.#writer = new SegmentWriter(
      { store, clock, ulid, paths: new Paths(scope), days: new PublishedDays({ store, clock, scope }), maxAttempts },
      {
        take: () => this.#take(),
        written: (group, name) => this.#acknowledge(group, name),
        failed: (group, error) => {
          for (const { reject } of group.appends) reject(error)
        },
      },
    )
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
      this.#writer.wake()
    })
  }

  /** Resolves when nothing is waiting any more. */
  async flush(): Promise<void> {
    await this.#writer.idle()
  }

  #acknowledge({ appends }: Group, segment: string): void {
    this.#announce({ ulid: segment, events: appends.flatMap((waiting) => waiting.events) })
    for (const { resolve, events } of appends) resolve({ segment, events })
  }

  #announce(segment: Segment): void {
    try {
      this.#options.onDurable?.(segment)
    } catch {
      // The segment is durable, so its appends succeed. A listener that failed finds it by listing.
    }
  }

  #take(): Group | undefined {
    let bytes = 0
    let count = 0
    for (const waiting of this.#queue) {
      if (count > 0 && bytes + waiting.bytes > this.#limits.maxSegmentBytes) break
      bytes += waiting.bytes
      count += 1
    }
    if (count === 0) return undefined
    this.#queuedBytes -= bytes
    const appends = this.#queue.splice(0, count)
    return { appends, texts: appends.flatMap((waiting) => waiting.texts) }
  }
}
