import { canonicalJson } from '../../lib/json.ts'
import { toMs } from '../../lib/time.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { Verdict } from '../../model/event.ts'
import { parkedEvents } from '../../model/system-tables.ts'
import type { Row } from '../../model/table.ts'
import type { State } from './state.ts'

export type ParkedEvent = Readonly<Row<typeof parkedEvents>>

/** The facts that wait for one subject, so that parking one more does not have to look through all of them. */
interface Queue {
  /** When the last of them was parked. */
  last: number
  /** By idempotency key. */
  readonly facts: Map<string, readonly Envelope[]>
}

/** Where events are kept that cannot be applied yet. */
export class Parking {
  readonly #state: State
  /** By subject. A queue is built when something is parked, and dropped when something leaves: only the rows are the truth. */
  readonly #queues = new Map<string, Queue>()

  constructor(state: State) {
    this.#state = state
  }

  get isEmpty(): boolean {
    return this.#state.hotTable(parkedEvents).size === 0
  }

  all(): Iterable<ParkedEvent> {
    return this.#state.hot(parkedEvents).all()
  }

  /** The events that wait for a subject, the latest first. */
  waitingFor(subject: string): ParkedEvent[] {
    return [...this.#state.hot(parkedEvents).under(subject)].sort(latestFirst)
  }

  /** True while this row is parked; false as well if its event has left and was parked anew. */
  holds(parked: ParkedEvent): boolean {
    return this.#state.hot(parkedEvents).get(parked.subject, parked.event_id) === parked
  }

  /** Parks an event, unless it is parked already, or waits for the same subject under another id. */
  add(envelope: Envelope, { on, reason }: Verdict & { kind: 'parked' }): void {
    const parked = this.#state.hot(parkedEvents)
    if (parked.get(on, envelope.event_id) !== undefined) return
    const queue = reason === 'waiting' ? this.#queueFor(on) : undefined
    if (queue?.facts.get(envelope.idempotency_key)?.some((other) => isSameFact(other, envelope))) return
    const received = toMs(envelope.timestamp)
    const row = {
      subject: on,
      event_id: envelope.event_id,
      event_type: envelope.event_type,
      reason,
      envelope,
      // Clocks disagree, and so do ids. The event that came first is tried first, also by a process that starts later.
      parked_at: queue === undefined ? received : Math.max(received, queue.last + 1),
      row_version: envelope.event_id,
    }
    parked.insert(row)
    if (queue !== undefined) enqueue(queue, row)
  }

  remove({ subject, event_id }: ParkedEvent): void {
    this.#state.hot(parkedEvents).remove(subject, event_id)
    this.#queues.delete(subject)
  }

  #queueFor(subject: string): Queue {
    const known = this.#queues.get(subject)
    if (known !== undefined) return known
    const queue: Queue = { last: 0, facts: new Map() }
    for (const row of this.#state.hot(parkedEvents).under(subject)) enqueue(queue, row)
    this.#queues.set(subject, queue)
    return queue
  }
}

function enqueue(queue: Queue, { envelope, parked_at }: ParkedEvent): void {
  queue.last = Math.max(queue.last, parked_at)
  const { idempotency_key: key } = envelope
  queue.facts.set(key, [...(queue.facts.get(key) ?? []), envelope])
}

const latestFirst = (a: ParkedEvent, b: ParkedEvent): number => b.parked_at - a.parked_at || (a.event_id < b.event_id ? 1 : -1)

const isSameFact = (a: Envelope, b: Envelope): boolean => canonicalJson(a.payload) === canonicalJson(b.payload)
