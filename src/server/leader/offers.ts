import type { AlarmClock } from '../../ports/clock.ts'
import type { Speaker } from './logs.ts'

/** A dispatch that waits for a worker to ask for it, or for its queue to take it. */
export interface Offer extends Speaker {
  readonly queue: string
  readonly priority: number
  /** When it was dispatched. */
  readonly since: number
  /** How long whoever takes it has to say that it began. */
  readonly leaseMs: number
  /** Which time it is offered, from 1. */
  readonly number: number
}

interface Entry {
  readonly offer: Offer
  /** Ends the lease; undefined while nobody has it. */
  endLease: (() => void) | undefined
}

/**
 * Work for workers that ask. What one of them took is not handed out again until its lease is over: a worker that never said
 * that it began has lost it, or was lost itself. It holds nothing that the state does not: a new process offers everything again.
 */
export class Offers {
  readonly #clock: AlarmClock
  readonly #queues = new Map<string, Map<string, Entry>>()
  readonly #listeners = new Set<() => void>()

  constructor(clock: AlarmClock) {
    this.#clock = clock
  }

  has({ queue, attempt_id }: Pick<Offer, 'queue' | 'attempt_id'>): boolean {
    return this.#queues.get(queue)?.has(attempt_id) ?? false
  }

  add(offer: Offer): void {
    if (this.has(offer)) return
    const entries = this.#queues.get(offer.queue) ?? new Map<string, Entry>()
    this.#queues.set(offer.queue, entries.set(offer.attempt_id, { offer, endLease: undefined }))
    this.#ring()
  }

  /** The most urgent offers of these queues, at most `count`; of all queues when none is named. */
  take(queues: readonly string[] | undefined, count: number, isOpen: (offer: Offer) => boolean): Offer[] {
    const waiting: Entry[] = []
    for (const queue of queues === undefined ? this.#queues.keys() : new Set(queues)) {
      for (const entry of this.#queues.get(queue)?.values() ?? [])
        if (entry.endLease === undefined && isOpen(entry.offer)) waiting.push(entry)
    }
    const taken = waiting.sort((a, b) => byUrgency(a.offer, b.offer)).slice(0, count)
    for (const entry of taken) this.#lease(entry)
    return taken.map(({ offer }) => offer)
  }

  /** A worker has begun it, or it is over. */
  remove({ queue, attempt_id }: Pick<Offer, 'queue' | 'attempt_id'>): void {
    const entries = this.#queues.get(queue)
    entries?.get(attempt_id)?.endLease?.()
    entries?.delete(attempt_id)
    if (entries?.size === 0) this.#queues.delete(queue)
  }

  /** Takes back what no worker was given. */
  withdraw(which: (offer: Offer) => boolean): Offer[] {
    const withdrawn: Offer[] = []
    for (const entries of this.#queues.values())
      for (const { offer, endLease } of entries.values()) if (endLease === undefined && which(offer)) withdrawn.push(offer)
    for (const offer of withdrawn) this.remove(offer)
    return withdrawn
  }

  /** Calls when there may be something to take, until what it returns is called. */
  onWork(call: () => void): () => void {
    this.#listeners.add(call)
    return () => this.#listeners.delete(call)
  }

  #lease(entry: Entry): void {
    entry.endLease = this.#clock.after(entry.offer.leaseMs, () => {
      entry.endLease = undefined
      this.#ring()
    })
  }

  #ring(): void {
    for (const call of this.#listeners) call()
  }
}

/** As they were dispatched: larger priorities first, then whoever has waited longest. */
function byUrgency(a: Offer, b: Offer): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  if (a.since !== b.since) return a.since - b.since
  return a.attempt_id < b.attempt_id ? -1 : 1
}
