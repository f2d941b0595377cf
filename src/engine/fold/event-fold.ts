import { canonicalJson } from '../../lib/json.ts'
import { toMs } from '../../lib/time.ts'
import type { Envelope } from '../../model/envelope.ts'
import { duplicate, type EventDefinition, ignored, type Read, type Registry, type Verdict } from '../../model/event.ts'
import { historyIndex, idempotencyKeys, parkedEvents } from '../../model/system-tables.ts'
import type { Row } from '../../model/table.ts'
import type { State } from './state.ts'

interface Fact {
  readonly envelope: Envelope
  readonly at: number
  readonly definition: EventDefinition
  readonly payload: unknown
}

type Parked = Row<typeof parkedEvents>

/** What waits for one subject, so that parking does not have to look through all of it. */
interface Queue {
  /** When the last of them was parked. */
  last: number
  /** By idempotency key. */
  readonly facts: Map<string, readonly Envelope[]>
}

const isVerdict = (value: Fact | Verdict): value is Verdict => 'kind' in value

/**
 * state' = fold(state, event). Pure and synchronous: what it needs from storage was fetched before, what follows from
 * an event is rows. An event that cannot be applied yet is parked, and tried again when what it waits for changes.
 */
export class EventFold {
  readonly #state: State
  readonly #definitions: ReadonlyMap<string, EventDefinition>
  #woken: string[] = []
  /** Made when something is parked, and forgotten when something leaves: the rows alone say what there is. */
  readonly #queues = new Map<string, Queue>()
  /** Checked once, though an event is looked at for its reads, for its fold, and again each time it is woken. */
  readonly #facts = new WeakMap<Envelope, Fact | Verdict>()
  /** The same for those that were made here: they are folded at once or not at all, and a weak map costs much more. */
  readonly #made = new Map<Envelope, Fact>()
  readonly #wake = (subject: string): void => {
    if (this.#state.hotTable(parkedEvents).size > 0) this.#woken.push(subject)
  }

  constructor(registry: Registry, state: State) {
    this.#state = state
    this.#definitions = new Map(registry.events.map((definition) => [definition.type, definition]))
  }

  /** Spares the check of an event that was made here a moment ago, by the definition it would be checked with. */
  trust(envelope: Envelope, definition: EventDefinition): void {
    if (this.#definitions.get(definition.type) !== definition) return
    this.#made.set(envelope, { envelope, at: toMs(envelope.timestamp), definition, payload: envelope.payload })
  }

  /** They are folded. */
  forgetTrusted(): void {
    this.#made.clear()
  }

  fold(envelope: Envelope): Verdict {
    const verdict = this.#attempt(envelope)
    if (verdict.kind === 'parked') this.#park(envelope, verdict)
    if (this.#woken.length > 0) this.#retryParked()
    return verdict
  }

  /** Cold rows that folding these events may look up, those of parked events included. */
  reads(envelopes: Iterable<Envelope>): Read[] {
    const reads: Read[] = []
    for (const envelope of envelopes) this.#readsOf(envelope, reads)
    for (const parked of this.#state.hot(parkedEvents).all()) this.#readsOf(envelopeIn(parked), reads)
    return reads
  }

  /** Tries everything again that an earlier version of Servo did not understand and this one does. */
  retryUnknown(): void {
    for (const parked of [...this.#state.hot(parkedEvents).all()]) {
      if (parked.reason !== 'waiting' && !isVerdict(this.#read(envelopeIn(parked)))) this.#woken.push(parked.subject)
    }
    this.#retryParked()
  }

  #attempt(envelope: Envelope): Verdict {
    const fact = this.#read(envelope)
    if (isVerdict(fact)) return fact
    const { definition, payload, at } = fact
    const about = definition.about?.(payload)
    if (about !== undefined && this.#isSealed(about)) return ignored('sealed')
    const key = definition.dedup === 'key' ? definition.idempotencyKey(payload) : undefined
    if (key !== undefined && this.#state.cold(idempotencyKeys).lookup(key) !== undefined) return duplicate

    const verdict = definition.fold({ event: envelope, at, payload, rows: this.#state, wake: this.#wake })
    // A key is used up only by an event that had an effect: one that waits may still arrive again first.
    if (key !== undefined && verdict.kind === 'applied') {
      this.#state.cold(idempotencyKeys).merge({
        idempotency_key: key,
        event_id: envelope.event_id,
        event_type: envelope.event_type,
        consumed_at: at,
        row_version: envelope.event_id,
      })
    }
    return verdict
  }

  #read(envelope: Envelope): Fact | Verdict {
    let fact = this.#made.get(envelope) ?? this.#facts.get(envelope)
    if (fact === undefined) {
      fact = this.#parse(envelope)
      this.#facts.set(envelope, fact)
    }
    return fact
  }

  #parse(envelope: Envelope): Fact | Verdict {
    const definition = this.#definitions.get(envelope.event_type)
    if (definition === undefined) return { kind: 'parked', on: `type:${envelope.event_type}`, reason: 'unknown_type' }
    if (envelope.event_version > definition.version)
      return { kind: 'parked', on: `type:${envelope.event_type}`, reason: 'unknown_version' }
    const parsed = definition.parse(envelope.payload)
    if (!parsed.success) return { kind: 'parked', on: `type:${envelope.event_type}`, reason: 'invalid_payload' }
    return { envelope, at: toMs(envelope.timestamp), definition, payload: parsed.data }
  }

  #readsOf(envelope: Envelope, reads: Read[]): void {
    const fact = this.#read(envelope)
    if (isVerdict(fact)) return
    const { definition, payload } = fact
    const about = definition.about?.(payload)
    // What is in memory is not sealed; asking the store about every fact of a live run would cost a look-up each.
    if (about !== undefined && !this.#isHot(about)) reads.push({ table: historyIndex, key: [about.owner, about.id] })
    if (definition.dedup === 'key') reads.push({ table: idempotencyKeys, key: [definition.idempotencyKey(payload)] })
    if (definition.reads !== undefined) reads.push(...definition.reads(payload))
  }

  #isHot({ owner, id }: { owner: string; id: string }): boolean {
    return this.#state.hotTable(this.#state.tableNamed(owner)).get(id) !== undefined
  }

  #isSealed(about: { owner: string; id: string }): boolean {
    return !this.#isHot(about) && this.#state.cold(historyIndex).lookup(about.owner, about.id) !== undefined
  }

  #park(envelope: Envelope, { on, reason }: Verdict & { kind: 'parked' }): void {
    const parked = this.#state.hot(parkedEvents)
    if (parked.get(on, envelope.event_id) !== undefined) return
    const queue = reason === 'waiting' ? this.#queueFor(on) : undefined
    // The same fact under another id waits already.
    if (queue?.facts.get(envelope.idempotency_key)?.some((other) => isSameFact(other, envelope))) return
    const received = toMs(envelope.timestamp)
    const row = {
      subject: on,
      event_id: envelope.event_id,
      event_type: envelope.event_type,
      reason,
      envelope,
      // Clocks disagree, and ids with them: the event that came first shall be tried first, also by a process that starts anew.
      parked_at: queue === undefined ? received : Math.max(received, queue.last + 1),
      row_version: envelope.event_id,
    }
    parked.insert(row)
    if (queue !== undefined) enqueue(queue, row)
  }

  #queueFor(subject: string): Queue {
    const known = this.#queues.get(subject)
    if (known !== undefined) return known
    const queue: Queue = { last: 0, facts: new Map() }
    for (const row of this.#state.hot(parkedEvents).under(subject)) enqueue(queue, row)
    this.#queues.set(subject, queue)
    return queue
  }

  /**
   * Tries again what waited for a change, in the order in which it came. What one of them changes in turn comes before
   * those behind it: the outcome is that of facts which arrived one by one, each after what it depends on.
   */
  #retryParked(): void {
    const parked = this.#state.hot(parkedEvents)
    const pending: Parked[] = []
    for (;;) {
      // What was woken first is tried first, so it goes on top.
      for (const subject of [...new Set(this.#woken.splice(0))].reverse()) {
        for (const row of [...parked.under(subject)].sort(latestFirst)) pending.push(row)
      }
      const next = pending.pop()
      if (next === undefined) return
      const { subject, event_id } = next
      if (parked.get(subject, event_id) !== next) continue
      const envelope = envelopeIn(next)
      const verdict = this.#attempt(envelope)
      if (verdict.kind === 'parked' && verdict.on === subject) continue
      parked.remove(subject, event_id)
      this.#queues.delete(subject)
      if (verdict.kind === 'parked') this.#park(envelope, verdict)
    }
  }
}

function enqueue(queue: Queue, parked: Parked): void {
  queue.last = Math.max(queue.last, parked.parked_at)
  const envelope = envelopeIn(parked)
  const { idempotency_key: key } = envelope
  queue.facts.set(key, [...(queue.facts.get(key) ?? []), envelope])
}

/** The event of a parked row. It was checked when its segment was read or made; the column holds any JSON. */
const envelopeIn = (parked: Readonly<Parked>): Envelope => parked.envelope as Envelope

const latestFirst = (a: Parked, b: Parked): number => b.parked_at - a.parked_at || (a.event_id < b.event_id ? 1 : -1)

const isSameFact = (a: Envelope, b: Envelope): boolean => canonicalJson(a.payload) === canonicalJson(b.payload)
