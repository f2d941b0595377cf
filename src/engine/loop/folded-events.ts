import { assert } from '../../lib/assert.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { Verdict } from '../../model/event.ts'
import type { CheckedEvent } from '../ledger/mint.ts'

/** Called with each event that this process wrote and the verdict on it, once, when the event is durable. */
export type OnRecorded = (event: Envelope, verdict: Verdict) => void
/** Called with all events as they become durable, those of other processes too, in the order of the record. */
export type OnEvents = (events: readonly Envelope[]) => void

interface Listeners {
  readonly onRecorded?: OnRecorded | undefined
  readonly onEvents?: OnEvents | undefined
}

/**
 * The events that are folded and not durable yet, with their verdicts. They are in the order of the fold, which is their order in the
 * segments too, so the number of events in a segment says which of them are its own.
 */
export class FoldedEvents {
  readonly #listeners: Listeners
  readonly #events: Envelope[] = []
  /** Of an event of another process there is none: it is durable already, and waits only for those before it. */
  readonly #verdicts: (Verdict | undefined)[] = []
  /** Durable, and not told yet: a segment may be closed and written while its last events wait to be folded. */
  #durable = 0

  constructor(listeners: Listeners) {
    this.#listeners = listeners
  }

  folded(events: readonly CheckedEvent[], verdicts: ReadonlyMap<string, Verdict>): void {
    if (!this.#isHeard) return
    for (const { event } of events) {
      const verdict = verdicts.get(event.event_id)
      assert(verdict !== undefined, 'an event that was folded has a verdict')
      this.#events.push(event)
      this.#verdicts.push(verdict)
    }
    if (this.#durable > 0) this.#tell()
  }

  /** Events of another process were folded; everything of this one before them is in a closed segment. */
  foldedOthers(events: readonly Envelope[]): void {
    if (this.#listeners.onEvents === undefined) return
    for (const event of events) {
      this.#events.push(event)
      this.#verdicts.push(undefined)
    }
    this.#tell()
  }

  /** A segment with so many events is durable. */
  durable(count: number): void {
    this.#durable += count
    this.#tell()
  }

  get #isHeard(): boolean {
    return this.#listeners.onRecorded !== undefined || this.#listeners.onEvents !== undefined
  }

  #tell(): void {
    if (!this.#isHeard) return
    let end = 0
    for (const verdict of this.#verdicts) {
      if (verdict !== undefined && this.#durable === 0) break
      if (verdict !== undefined) this.#durable -= 1
      end += 1
    }
    if (end === 0) return
    const events = this.#events.splice(0, end)
    for (const [place, verdict] of this.#verdicts.splice(0, end).entries()) {
      const event = events[place]
      if (event !== undefined && verdict !== undefined) this.#listeners.onRecorded?.(event, verdict)
    }
    this.#listeners.onEvents?.(events)
  }
}
