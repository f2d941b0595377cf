import { orchestration } from '../../../domain/index.ts'
import type { Envelope } from '../../../model/envelope.ts'

/** What is kept of the newest events while somebody follows: enough for whoever pauses for a moment. Who falls behind further reads the ledger. */
const MAX_EVENTS = 10_000
const MAX_BYTES = 8 << 20
/** What a follower is given at a time. */
const BATCH_BYTES = 256 << 10

const carries = new Map(
  orchestration.events.flatMap(({ type, carries: of }) => (of === undefined ? [] : [[type, of] as const])),
)

/**
 * An event as it is sent. A value that it carries is left out, so that an event looks the same before and after it was packed, and nobody reads
 * here what was purged.
 */
export function sentEvent(event: Envelope): Envelope {
  const without = carries.get(event.event_type)?.(event.payload)?.without
  return without === undefined ? event : { ...event, payload: without }
}

/** An event as `text/event-stream` has it. */
export const frameOf = (event: Envelope): Buffer => Buffer.from(`id: ${event.event_id}\ndata: ${JSON.stringify(event)}\n\n`)

interface Kept {
  readonly event: Envelope
  readonly frame: Buffer
}

/** Which events somebody wants. Followers that want the same have the same name. */
export interface WantedEvents {
  readonly name: string
  readonly matches: (event: Envelope) => boolean
}

/** Some events, as they are sent. */
export interface EventBatch {
  /** Empty if none of the events is wanted. */
  readonly frames: Uint8Array
  /** The number of the event behind them. */
  readonly next: number
  /** The id of the last event that was looked at. */
  readonly last: string | undefined
}

/**
 * The newest events of this process, in the order of the record, each encoded once for all who follow. Events have numbers, which count
 * from the start of the process and mean nothing outside of it. Nothing is kept or encoded while nobody follows.
 */
export class EventTail {
  #kept: Kept[] = []
  #bytes = 0
  /** The number of the first event that is kept. */
  #first = 0
  /** The id of the event before that one; undefined if there is none. */
  #before: string | undefined
  readonly #numbers = new Map<string, number>()
  readonly #followers = new Set<() => void>()
  /** Batches that were put together since the last event came: followers wake at the same time and want the same. */
  readonly #made = new Map<string, EventBatch>()

  /** The state was opened anew: what comes now follows this event. Whoever was behind reads the ledger. */
  opened(newest: string | undefined): void {
    this.#first += this.#kept.length
    this.#forget()
    this.#before = newest
  }

  /** These events are durable. */
  add(events: readonly Envelope[]): void {
    const last = events.at(-1)
    if (last === undefined) return
    if (this.#followers.size === 0) {
      this.#first += this.#kept.length + events.length
      this.#forget()
      this.#before = last.event_id
      return
    }
    this.#made.clear()
    for (const each of events) {
      const event = sentEvent(each)
      const frame = frameOf(event)
      this.#numbers.set(event.event_id, this.end)
      this.#kept.push({ event, frame })
      this.#bytes += frame.length
    }
    this.#drop()
    for (const wake of this.#followers) wake()
  }

  /** The number of the event that comes next. */
  get end(): number {
    return this.#first + this.#kept.length
  }

  /** The number of the event behind this one; undefined if it is not known here. */
  behind(eventId: string): number | undefined {
    if (eventId === this.#before) return this.#first
    const number = this.#numbers.get(eventId)
    return number === undefined ? undefined : number + 1
  }

  /** Calls `wake` whenever events have come. The function it returns ends that. */
  follow(wake: () => void): () => void {
    this.#followers.add(wake)
    return () => void this.#followers.delete(wake)
  }

  /** The events from a number on, as many as fit into a batch; undefined if they are not kept any more. */
  read(from: number, wanted: WantedEvents): EventBatch | undefined {
    if (from < this.#first) return undefined
    const name = `${from} ${wanted.name}`
    const made = this.#made.get(name) ?? this.#batch(from, wanted)
    this.#made.set(name, made)
    return made
  }

  #batch(from: number, { matches }: WantedEvents): EventBatch {
    const frames: Buffer[] = []
    let [bytes, next] = [0, from]
    let last: string | undefined
    for (; next < this.end && bytes < BATCH_BYTES; next++) {
      const kept = this.#kept[next - this.#first]
      if (kept === undefined) break
      last = kept.event.event_id
      if (!matches(kept.event)) continue
      frames.push(kept.frame)
      bytes += kept.frame.length
    }
    return { frames: frames.length === 1 && frames[0] !== undefined ? frames[0] : Buffer.concat(frames), next, last }
  }

  #drop(): void {
    let dropped = 0
    while (this.#bytes > MAX_BYTES || this.#kept.length - dropped > MAX_EVENTS) {
      const oldest = this.#kept[dropped]
      if (oldest === undefined) break
      this.#bytes -= oldest.frame.length
      this.#numbers.delete(oldest.event.event_id)
      this.#before = oldest.event.event_id
      dropped += 1
    }
    if (dropped === 0) return
    this.#kept = this.#kept.slice(dropped)
    this.#first += dropped
  }

  #forget(): void {
    this.#kept = []
    this.#bytes = 0
    this.#numbers.clear()
    this.#made.clear()
  }
}
