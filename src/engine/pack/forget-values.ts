import { sha256 } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { CarriedValue, Registry } from '../../model/event.ts'
import type { PackedSegment } from '../ledger/archive-file.ts'
import { encodeSegment, type Segment } from '../ledger/segment.ts'

/** Which of these events carry a value that is purged or has expired, by the place in the list. Asked once, when their segments are packed. */
export type FindForgotten = (events: readonly Envelope[]) => Promise<readonly boolean[]>

/** A segment and the bytes in which it is stored. */
interface Stored {
  readonly bytes: Uint8Array
  readonly segment: Segment
}

/** Segments as they are packed: as they were written, or without values that are to be forgotten. */
export class Forgetting {
  readonly #findForgotten: FindForgotten | undefined
  readonly #carries: ReadonlyMap<string, NonNullable<Registry['events'][number]['carries']>>

  constructor(registry: Registry, findForgotten: FindForgotten | undefined) {
    this.#findForgotten = findForgotten
    this.#carries = new Map(registry.events.flatMap(({ type, carries }) => (carries === undefined ? [] : [[type, carries]])))
  }

  async packed(stored: readonly Stored[]): Promise<PackedSegment[]> {
    const forgotten = await this.#forgottenIn(stored.flatMap(({ segment }) => segment.events))
    return stored.map((each) => without(each, forgotten))
  }

  async #forgottenIn(events: readonly Envelope[]): Promise<Map<Envelope, CarriedValue>> {
    if (this.#findForgotten === undefined) return new Map()
    const carried = events.flatMap((event): [Envelope, CarriedValue][] => {
      const value = this.#carries.get(event.event_type)?.(event.payload)
      return value === undefined ? [] : [[event, value]]
    })
    if (carried.length === 0) return new Map()
    const isForgotten = await this.#findForgotten(carried.map(([event]) => event))
    return new Map(carried.filter((_, i) => isForgotten[i]))
  }
}

function without({ bytes, segment }: Stored, forgotten: ReadonlyMap<Envelope, CarriedValue>): PackedSegment {
  const { ulid, events, sequence } = segment
  const forgotten_values = events.flatMap((event) => forgotten.get(event)?.sha256 ?? [])
  if (forgotten_values.length === 0) return { ulid, bytes }
  const original = { bytes: bytes.length, sha256: sha256(bytes), forgotten_values }
  const texts = events.map((event) => canonicalJson({ ...event, payload: forgotten.get(event)?.without ?? event.payload }))
  return { ulid, bytes: encodeSegment(ulid, texts, sequence), original }
}
