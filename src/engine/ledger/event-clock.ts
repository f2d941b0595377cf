import { type UlidSource, ulidAfter, ulidAt, ulidTime } from '../../lib/ulid.ts'
import type { Clock } from '../../ports/clock.ts'
import type { NewestEvent } from '../manifest/manifest.ts'

/**
 * Gives events their ids and times, so that each stands behind everything on record. A clock that was ahead may have recorded times that
 * are later than now, and the clock may be set back while this runs. Then an id has the time that the clock shows and what it is behind;
 * `behind_ms` of the event says how much that is. Time goes on at the pace of the clock. Once the clock has passed everything on record,
 * it is behind no more.
 */
export class EventClock {
  readonly #clock: Pick<Clock, 'now'>
  readonly #ulid: UlidSource
  /** The last time that was given, or is on record. */
  #latest = 0
  #lastId = ''
  /** What the clock showed for the last id. */
  now = 0
  /** How far the clock was behind then. */
  behindMs = 0

  constructor({ clock, ulid }: { readonly clock: Pick<Clock, 'now'>; readonly ulid: UlidSource }) {
    this.#clock = clock
    this.#ulid = ulid
  }

  /** This is on record: whatever comes next is later. */
  follow(newest: NewestEvent | undefined): void {
    if (newest === undefined || newest.event_id <= this.#lastId) return
    this.#lastId = newest.event_id
    this.#latest = Math.max(this.#latest, ulidTime(newest.event_id))
    this.behindMs = Math.max(this.behindMs, newest.behind_ms ?? 0)
  }

  /** The next id. `now` and `behindMs` are of the same moment. */
  mint(): string {
    const now = this.#clock.now()
    if (now > this.#latest) this.behindMs = 0
    // A millisecond later than what is on record, so that times alone tell them apart.
    else if (now + this.behindMs < this.#latest) this.behindMs = this.#latest + 1 - now
    this.now = now
    this.#latest = now + this.behindMs
    const drawn = this.#ulid()
    const id = this.behindMs === 0 ? drawn : ulidAt(this.#latest, drawn)
    this.#lastId = id > this.#lastId ? id : ulidAfter(this.#lastId)
    return this.#lastId
  }
}
