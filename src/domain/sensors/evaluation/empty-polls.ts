import { MINUTE_MS, toIso } from '../../../lib/time.ts'
import { type NewEvent, newEvent } from '../../../model/event.ts'
import { MAX_POLLED, SensorsPolled } from '../sensors-polled.event.ts'

/** How long a poll that found nothing may go without a record. With the tables that are published for it, that is less than one write a minute. */
const RECORD_EVERY_MS = 2 * MINUTE_MS

interface Noted {
  readonly state_version: number
  poll_count: number
  readonly first: number
  last: number
}

/**
 * Polls that found nothing and are not on record yet, so that those of all sensors cost less than one write a minute. Losing them in a crash
 * loses nothing but their count.
 */
export class EmptyPollNotes {
  readonly #noted = new Map<string, Noted>()
  #since: number | undefined

  /** Notes a poll; one of a newer version replaces what was noted of the version before. */
  note(sensorId: string, stateVersion: number, at: number): void {
    this.#since ??= at
    const known = this.#noted.get(sensorId)
    if (known?.state_version === stateVersion) {
      known.poll_count += 1
      known.last = Math.max(known.last, at)
    } else this.#noted.set(sensorId, { state_version: stateVersion, poll_count: 1, first: at, last: at })
  }

  /** What is noted of a sensor. */
  of(sensorId: string): Readonly<Noted> | undefined {
    return this.#noted.get(sensorId)
  }

  /** When the notes are due to be recorded, undefined if there are none. */
  get dueAt(): number | undefined {
    return this.#since === undefined ? undefined : this.#since + RECORD_EVERY_MS
  }

  /** Takes the notes of one sensor, to be written before its version changes, or of all. */
  take(recordId: string, sensorId?: string): NewEvent[] {
    const taken = [...this.#noted].filter(([id]) => sensorId === undefined || id === sensorId)
    for (const [id] of taken) this.#noted.delete(id)
    if (this.#noted.size === 0) this.#since = undefined
    const polled = taken.map(([sensor_id, { first, last, ...noted }]) => ({
      sensor_id,
      ...noted,
      first: toIso(first),
      last: toIso(last),
    }))
    const events: NewEvent[] = []
    for (let at = 0; at < polled.length; at += MAX_POLLED)
      events.push(newEvent(SensorsPolled, { record_id: `${recordId}:${at}`, polled: polled.slice(at, at + MAX_POLLED) }))
    return events
  }
}
