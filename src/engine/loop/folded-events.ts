import { assert } from '../../lib/assert.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { Verdict } from '../../model/event.ts'
import type { CheckedEvent } from '../ledger/mint.ts'

/** Called with each event that this process wrote, the verdict on it and when it was folded, once, when the event is durable. */
export type OnRecorded = (event: Envelope, verdict: Verdict, foldedAt: number) => void

/**
 * The events that are folded and not durable yet, with their verdicts. They are in the order of the fold, which is their order in the
 * segments too, so the number of events in a segment says which of them are its own.
 */
export class FoldedEvents {
  readonly #told: OnRecorded | undefined
  readonly #events: Envelope[] = []
  readonly #verdicts: Verdict[] = []
  readonly #times: number[] = []
  readonly #now: () => number
  /** Durable, and not told yet: a segment may be closed and written while its last events wait to be folded. */
  #durable = 0

  constructor(told: OnRecorded | undefined, now: () => number) {
    this.#told = told
    this.#now = now
  }

  folded(events: readonly CheckedEvent[], verdicts: ReadonlyMap<string, Verdict>): void {
    if (this.#told === undefined) return
    const now = this.#now()
    for (const { event } of events) {
      const verdict = verdicts.get(event.event_id)
      assert(verdict !== undefined, 'an event that was folded has a verdict')
      this.#events.push(event)
      this.#verdicts.push(verdict)
      this.#times.push(now)
    }
    if (this.#durable > 0) this.#tell()
  }

  /** A segment with so many events is durable. */
  durable(count: number): void {
    this.#durable += count
    this.#tell()
  }

  #tell(): void {
    if (this.#told === undefined) return
    const events = this.#events.splice(0, this.#durable)
    const verdicts = this.#verdicts.splice(0, this.#durable)
    const times = this.#times.splice(0, this.#durable)
    this.#durable -= events.length
    for (const [place, event] of events.entries()) {
      const verdict = verdicts[place]
      if (verdict !== undefined) this.#told(event, verdict, times[place] ?? 0)
    }
  }
}
