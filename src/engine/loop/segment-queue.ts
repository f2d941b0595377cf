import { assert } from '../../lib/assert.ts'
import type { Consumed } from '../ledger/consumed.ts'
import { type Minted, sizeLimits } from '../ledger/mint.ts'
import type { Submission } from './inbox.ts'
import type { ChangedRows } from './reactions.ts'

/** Events that are folded and will be written together. */
interface OpenSegment {
  readonly texts: string[]
  bytes: number
  /** True if the tables need not be published because of any of its events. */
  canWait: boolean
  readonly submissions: Submission[]
  readonly changed: ChangedRows
}

export interface ClosedSegment extends OpenSegment {
  readonly consumed: Consumed
  /** Resolves when the segment is durable, or never will be. */
  readonly ended: PromiseWithResolvers<void>
}

/** A segment this large takes no more decisions: what follows goes into the next. */
const FULL_SEGMENT_BYTES = sizeLimits.maxSegmentBytes / 2

/**
 * The segments between a loop's fold and the ledger. One is open and fills; closed ones have their place in the order of segments. The
 * writer takes them in that order, and each leaves the queue when it is durable.
 */
export class SegmentQueue {
  readonly #onClosed: (segment: ClosedSegment) => void
  #open: OpenSegment | undefined
  /** Oldest first; the writer has taken the first few. */
  readonly #closed: ClosedSegment[] = []
  #taken = 0
  #durable = 0

  constructor(onClosed: (segment: ClosedSegment) => void) {
    this.#onClosed = onClosed
  }

  /** How many segments became durable: while the number grows, waiting callers are getting on. */
  get durable(): number {
    return this.#durable
  }

  /** True if nothing waits to be written. */
  get isEmpty(): boolean {
    return this.#closed.length === 0 && !this.#hasEvents
  }

  /** True if the open segment should take no more decisions. */
  get isFull(): boolean {
    return (this.#open?.bytes ?? 0) > FULL_SEGMENT_BYTES
  }

  /** The rows that the open segment has changed. */
  get changed(): ChangedRows {
    return this.#opened().changed
  }

  append(minted: Minted): void {
    if ((this.#open?.bytes ?? 0) + minted.bytes > sizeLimits.maxSegmentBytes) this.close()
    const open = this.#opened()
    for (const text of minted.texts) open.texts.push(text)
    open.bytes += minted.bytes
    open.canWait &&= minted.checked.every(({ definition }) => definition.publishedWithOthers)
  }

  /** Adds facts of a caller, who is answered when the segment is durable. */
  accept(submission: Submission): void {
    this.append(submission.minted)
    this.#opened().submissions.push(submission)
  }

  /** Closes the open segment, if it has any events, and returns it. */
  close(): ClosedSegment | undefined {
    const open = this.#open
    if (open === undefined || open.texts.length === 0) return undefined
    this.#open = undefined
    const segment: ClosedSegment = { ...open, consumed: {}, ended: Promise.withResolvers() }
    this.#closed.push(segment)
    this.#onClosed(segment)
    return segment
  }

  /** The next segment for the writer. */
  take(): ClosedSegment | undefined {
    if (this.#taken === this.#closed.length) this.close()
    const segment = this.#closed[this.#taken]
    if (segment !== undefined) this.#taken += 1
    return segment
  }

  /** Takes the rows that changed without an event of this process: other processes have made those changes durable already. */
  takeChangedByOthers(): ChangedRows | undefined {
    if (this.#hasEvents) return undefined
    const changed = this.#open?.changed
    this.#open = undefined
    return changed
  }

  /** The oldest segment is durable. */
  remove(segment: ClosedSegment): void {
    assert(this.#closed.shift() === segment, 'segments become durable in the order in which they were closed')
    this.#taken -= 1
    this.#durable += 1
    segment.consumed.isDurable = true
    segment.ended.resolve()
  }

  /** Resolves when every segment that is closed now is durable, or never will be. */
  async ended(): Promise<void> {
    await this.#closed.at(-1)?.ended.promise
  }

  /** Gives up every segment. Returns the submissions that they held. */
  giveUp(): Submission[] {
    const submissions = [...this.#closed, ...(this.#open === undefined ? [] : [this.#open])].flatMap((it) => it.submissions)
    for (const { ended } of this.#closed.splice(0)) ended.resolve()
    this.#open = undefined
    this.#taken = 0
    return submissions
  }

  get #hasEvents(): boolean {
    return this.#open !== undefined && this.#open.texts.length > 0
  }

  #opened(): OpenSegment {
    this.#open ??= { texts: [], bytes: 0, canWait: true, submissions: [], changed: new Map() }
    return this.#open
  }
}
