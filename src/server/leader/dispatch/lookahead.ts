/** Longer than a durable write takes: a worker that becomes free within this time shall find its next attempt waiting. */
const AHEAD_MS = 20
const MAX_AHEAD = 256
/** How much the newest attempt counts. */
const WEIGHT = 0.1

/**
 * Decides how many attempts wait beside busy workers. A worker that has ended one need not wait until the next is durably
 * dispatched. But a more urgent task cannot overtake a waiting attempt, so only as many wait as the workers finish in a moment:
 * many small attempts, hardly any long ones.
 */
export class Lookahead {
  #attemptMs = 1_000

  /** Learns how long an attempt took. */
  ended(ms: number): void {
    this.#attemptMs += WEIGHT * (ms - this.#attemptMs)
  }

  for(workers: number): number {
    return Math.min(MAX_AHEAD, Math.ceil((workers * AHEAD_MS) / Math.max(this.#attemptMs, 0.05)))
  }
}
