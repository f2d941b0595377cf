import type { Envelope } from '../../model/envelope.ts'
import { type Damage, type LedgerPlace, readUndamaged } from '../ledger/read-segment.ts'
import { type Manifest, type OrderEntry, orderedDelta } from '../manifest/manifest.ts'
import { type PageRef, readEntries, readPage } from '../manifest/page-list.ts'
import type { RecordedOrder } from '../manifest/recorded-order.ts'
import { readOrder } from '../publish/folded-segments.ts'

/** Where to begin: behind an event on record, or with the first event whose id is not smaller. */
export type Beginning = { readonly after: string } | { readonly since: string }

/** Segments that are read ahead of who takes their events. */
const READ_AHEAD = 8

/**
 * Reads events from the ledger, segments and archives alike, in the order of the record. Ids of events grow along that order, so that a place
 * is found by reading the first event of few segments; a process that wrote beside the leader may have broken that rule for a moment, so
 * an event is looked for exactly before its id is compared.
 */
export class RecordedEvents {
  readonly #ledger: LedgerPlace
  readonly #onDamage: (damage: Damage) => void

  constructor(ledger: LedgerPlace, onDamage: (damage: Damage) => void) {
    this.#ledger = ledger
    this.#onDamage = onDamage
  }

  /** The events from a place on, one segment at a time. From the first one if no place is given. */
  async *from(order: RecordedOrder, beginning?: Beginning): AsyncGenerator<readonly Envelope[]> {
    const parts = beginning === undefined ? this.#parts(order, 0) : this.#partsFrom(order, idOf(beginning))
    let isFirst = beginning !== undefined
    for await (const part of parts) {
      let segments = part
      if (isFirst && beginning !== undefined) {
        const place = await this.#placeIn(part, beginning)
        segments = part.slice(place.segment)
        isFirst = false
        if (place.events.length > 0) yield place.events
        segments = segments.slice(1)
      }
      for (let start = 0; start < segments.length; start += READ_AHEAD) {
        const read = segments.slice(start, start + READ_AHEAD).map((ulid) => this.#read(ulid))
        for (const events of await Promise.all(read)) if (events.length > 0) yield events
      }
    }
  }

  /** Lists of segments, oldest first: one for each entry of the recorded order, then the deltas, then the tail. */
  async *#parts({ manifest, tail }: RecordedOrder, fromPublish: number): AsyncGenerator<readonly string[]> {
    for await (const entry of readEntries(this.#ledger.store, manifest.order, fromPublish)) yield await this.#segmentsOf(entry)
    yield [...manifest.l0.map(orderedDelta).flatMap(({ segments }) => segments), ...tail]
  }

  /** The same, beginning with the last list whose first event is not later than this one. */
  async *#partsFrom(order: RecordedOrder, id: string): AsyncGenerator<readonly string[]> {
    const newest = [...order.manifest.l0.flatMap(({ segments }) => segments), ...order.tail]
    if (await this.#beginsBefore(newest, id)) yield newest
    else yield* this.#parts(order, (await this.#entryBefore(order.manifest, id)) ?? 0)
  }

  /** The publish of the last entry of the order whose first event is not later than this one; undefined if all are later. */
  async #entryBefore({ order: { levels } }: Manifest, id: string): Promise<number | undefined> {
    // The newest are in the lowest level.
    for (const level of levels) {
      const found = await this.#lastBefore(level, id)
      if (found !== undefined) return found
    }
    return undefined
  }

  async #lastBefore(level: readonly (OrderEntry | PageRef)[], id: string): Promise<number | undefined> {
    for (const each of level.toReversed()) {
      const entry = await this.#firstEntry(each)
      if (entry === undefined || !(await this.#beginsBefore(await this.#segmentsOf(entry), id))) continue
      return isPage(each) ? await this.#lastBefore(await this.#contentOf(each), id) : entry.publish
    }
    return undefined
  }

  async #firstEntry(at: OrderEntry | PageRef): Promise<OrderEntry | undefined> {
    if (!isPage(at)) return at
    const [first] = await this.#contentOf(at)
    return first && (await this.#firstEntry(first))
  }

  #contentOf(page: PageRef): Promise<(OrderEntry | PageRef)[]> {
    return readPage(this.#ledger.store, page)
  }

  async #beginsBefore(segments: readonly string[], id: string): Promise<boolean> {
    for (const ulid of segments) {
      const [first] = await this.#read(ulid)
      // A segment that is damaged says nothing.
      if (first !== undefined) return first.event_id <= id
    }
    return false
  }

  /** The segment in which to begin, and those of its events that come. */
  async #placeIn(
    segments: readonly string[],
    beginning: Beginning,
  ): Promise<{ readonly segment: number; readonly events: readonly Envelope[] }> {
    const id = idOf(beginning)
    let [low, high] = [0, segments.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (await this.#beginsBefore(segments.slice(middle, middle + 1), id)) low = middle
      else high = middle - 1
    }
    const isExact = 'after' in beginning
    const at = async (segment: number): Promise<{ segment: number; events: readonly Envelope[] } | undefined> => {
      const events = await this.#read(segments[segment] ?? '')
      const place = events.findIndex(({ event_id }) => event_id === id)
      return place < 0 ? undefined : { segment, events: events.slice(place + 1) }
    }
    const exactly = isExact ? await at(low) : undefined
    if (exactly !== undefined) return exactly
    // Ids that are out of order are rare; this looks at every segment of one list.
    for (let segment = 0; isExact && segment < segments.length; segment++) {
      const found = segment === low ? undefined : await at(segment)
      if (found !== undefined) return found
    }
    const events = await this.#read(segments[low] ?? '')
    return { segment: low, events: events.filter(({ event_id }) => (isExact ? event_id > id : event_id >= id)) }
  }

  async #segmentsOf(entry: OrderEntry): Promise<readonly string[]> {
    return (await readOrder(this.#ledger.store, entry)).flatMap(({ segments }) => segments)
  }

  async #read(ulid: string): Promise<readonly Envelope[]> {
    if (ulid === '') return []
    return (await readUndamaged(this.#ledger, ulid, this.#onDamage))?.events ?? []
  }
}

const idOf = (beginning: Beginning): string => ('after' in beginning ? beginning.after : beginning.since)

const isPage = (each: OrderEntry | PageRef): each is PageRef => 'first' in each
