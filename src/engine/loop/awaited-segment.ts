import { setImmediate as pause } from 'node:timers/promises'
import type { ClosedSegment } from './segment-queue.ts'

/** A segment from which much follows: a backfill, or a thousand ticks. Nothing is decided before it is durable and its callers are answered. */
export class AwaitedSegment {
  readonly #goOn: () => void
  #segment: ClosedSegment | undefined
  /** Resolves when its callers have had time to send their answers on; set from the moment that they are answered. */
  answering: Promise<void> | undefined

  constructor(goOn: () => void) {
    this.#goOn = goOn
  }

  get isPending(): boolean {
    return this.#segment !== undefined
  }

  expect(segment: ClosedSegment): void {
    this.#segment = segment
  }

  /** The callers of a segment are answered. */
  answered(segment: ClosedSegment): void {
    if (segment === this.#segment) this.answering = this.#after()
  }

  async #after(): Promise<void> {
    await pause()
    this.#segment = undefined
    this.answering = undefined
    this.#goOn()
  }
}
