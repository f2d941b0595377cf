import { sha256 } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { CarriedValue, Registry } from '../../model/event.ts'
import type { PackedSegment } from '../ledger/archive-file.ts'
import { encodeSegment, type Segment } from '../ledger/segment.ts'

/** True if the value that this event carries is purged or has expired. Asked once, when the segment of the event is packed. */
export type IsForgotten = (event: Envelope, value: CarriedValue) => boolean

/** Segments as they are packed: as they were written, or without values that are to be forgotten. */
export class Forgetting {
  readonly #isForgotten: IsForgotten | undefined
  readonly #carries: ReadonlyMap<string, NonNullable<Registry['events'][number]['carries']>>

  constructor(registry: Registry, isForgotten: IsForgotten | undefined) {
    this.#isForgotten = isForgotten
    this.#carries = new Map(registry.events.flatMap(({ type, carries }) => (carries === undefined ? [] : [[type, carries]])))
  }

  packed(bytes: Uint8Array, { ulid, events, sequence }: Segment): PackedSegment {
    const forgotten_values: string[] = []
    const left = events.map((event) => {
      const value = this.#isForgotten && this.#carries.get(event.event_type)?.(event.payload)
      if (value === undefined || !this.#isForgotten?.(event, value)) return event
      forgotten_values.push(value.sha256)
      return { ...event, payload: value.without }
    })
    if (forgotten_values.length === 0) return { ulid, bytes }
    const original = { bytes: bytes.length, sha256: sha256(bytes), forgotten_values }
    const texts = left.map((event) => canonicalJson(event))
    return { ulid, bytes: encodeSegment(ulid, texts, sequence), original }
  }
}
