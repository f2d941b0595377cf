import { toMs } from '../../lib/time.ts'
import type { Envelope } from '../../model/envelope.ts'
import {
  duplicate,
  type EventDefinition,
  ignored,
  isVerdict,
  type Read,
  type Registry,
  type Verdict,
} from '../../model/event.ts'
import { historyIndex, idempotencyKeys } from '../../model/system-tables.ts'
import { type ParkedEvent, Parking } from './parking.ts'
import type { State } from './state.ts'

interface Fact {
  readonly envelope: Envelope
  readonly at: number
  readonly definition: EventDefinition
  readonly payload: unknown
}

/**
 * state' = fold(state, event). Pure and synchronous: the rows that it needs from storage were fetched before, and what follows from
 * an event is rows. An event that cannot be applied yet is parked, and tried again when what it waits for changes.
 */
export class EventFold {
  readonly #state: State
  readonly #definitions: ReadonlyMap<string, EventDefinition>
  readonly #parking: Parking
  #woken: string[] = []
  /** An event is checked once, though it is looked at for its reads, for its fold, and again each time it is woken. */
  readonly #facts = new WeakMap<Envelope, Fact | Verdict>()
  /** Events that this process made. They are folded at once or not at all, and an entry in a weak map costs much more. */
  readonly #made = new Map<Envelope, Fact>()
  readonly #wake = (subject: string): void => {
    if (!this.#parking.isEmpty) this.#woken.push(subject)
  }

  constructor(registry: Registry, state: State) {
    this.#state = state
    this.#parking = new Parking(state)
    this.#definitions = new Map(registry.events.map((definition) => [definition.type, definition]))
  }

  /** Spares the check of an event that this process has just made, with the definition it would be checked with. */
  trust(envelope: Envelope, definition: EventDefinition): void {
    if (this.#definitions.get(definition.type) !== definition) return
    this.#made.set(envelope, { envelope, at: toMs(envelope.timestamp), definition, payload: envelope.payload })
  }

  /** The trusted events are folded. */
  forgetTrusted(): void {
    this.#made.clear()
  }

  fold(envelope: Envelope): Verdict {
    const verdict = this.#attempt(envelope)
    if (verdict.kind === 'parked') this.#parking.add(envelope, verdict)
    if (this.#woken.length > 0) this.#retryParked()
    return verdict
  }

  /** Cold rows that folding these events may look up, including those that parked events may look up. */
  reads(envelopes: Iterable<Envelope>): Read[] {
    const reads: Read[] = []
    for (const envelope of envelopes) this.#readsOf(envelope, reads)
    for (const parked of this.#parking.all()) this.#readsOf(parked.envelope, reads)
    return reads
  }

  /** Tries again every event that an earlier version of Servo did not understand and this one does. */
  retryUnknown(): void {
    for (const parked of [...this.#parking.all()]) {
      if (parked.reason !== 'waiting' && !isVerdict(this.#read(parked.envelope))) this.#woken.push(parked.subject)
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
    // Only an event that had an effect uses up its key: the same fact may arrive again before one that waits is applied.
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
    // A row in memory is not sealed. Reading the store for every fact of a live run would cost a look-up each.
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

  /**
   * Tries the events again that waited for a change, in the order in which they came. Events that are woken by one of them come
   * before the rest: the rows end up as if the facts had arrived one by one, each after what it depends on.
   */
  #retryParked(): void {
    const pending: ParkedEvent[] = []
    for (;;) {
      // The subject that was woken first is tried first, so it goes on top.
      for (const subject of [...new Set(this.#woken.splice(0))].reverse()) {
        for (const parked of this.#parking.waitingFor(subject)) pending.push(parked)
      }
      const next = pending.pop()
      if (next === undefined) return
      if (!this.#parking.holds(next)) continue
      const { envelope } = next
      const verdict = this.#attempt(envelope)
      if (verdict.kind === 'parked' && verdict.on === next.subject) continue
      this.#parking.remove(next)
      if (verdict.kind === 'parked') this.#parking.add(envelope, verdict)
    }
  }
}
