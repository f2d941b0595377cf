import { z } from 'zod'
import { isServoError, ServoError } from '../lib/error.ts'
import { canonicalJson } from '../lib/json.ts'
import { MINUTE_MS, toIso } from '../lib/time.ts'
import { type UlidSource, ulidTime } from '../lib/ulid.ts'
import { type Envelope, envelopeSchema } from '../model/envelope.ts'
import type { EventDefinition } from '../model/event.ts'
import type { Clock } from '../ports/clock.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import { checkScope, Paths, type Scope } from './paths.ts'
import { encodeSegment, type Segment } from './segment.ts'

const checkEnvelope = z.compile(envelopeSchema)

/** An event as a caller hands it in; the ledger adds ids, time and scope. */
export interface NewEvent extends EventContext {
  readonly definition: EventDefinition
  readonly payload: unknown
}

export interface EventContext {
  readonly correlation_id?: string
  readonly causation_id?: string
  readonly traceparent?: string
  readonly actor?: string
}

/** An event to append, with its payload checked by the compiler too. */
export function newEvent<P, I>(definition: EventDefinition<P, I>, payload: I, context: EventContext = {}): NewEvent {
  return { definition, payload, ...context }
}

export interface Appended {
  readonly segment: string
  readonly events: readonly Envelope[]
}

export interface LedgerOptions {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly clock: Clock
  readonly ulid: UlidSource
  /** Who writes, e.g. `servo/api`. */
  readonly source: string
  readonly limits?: Partial<LedgerLimits>
  /** Told of every durable segment, before its appends are acknowledged. */
  readonly onDurable?: (segment: Segment) => void
}

export interface LedgerLimits {
  /** One event. Larger things belong into the object store, with a reference here. */
  readonly maxEventBytes: number
  /** One append, and with it one segment: what must be read into memory at once. */
  readonly maxSegmentBytes: number
  /** What may wait for the write in flight before appends are refused. */
  readonly maxWaitingBytes: number
  /** How often a write with an unknown outcome is tried before the append fails. */
  readonly maxAttempts: number
}

const ledgerLimits: LedgerLimits = {
  maxEventBytes: 1 << 20,
  maxSegmentBytes: 32 << 20,
  maxWaitingBytes: 128 << 20,
  maxAttempts: 5,
}

/** The oldest a segment's ULID may be when it is written: listings look back further than this, so none is missed. */
export const REMINT_AFTER_MS = MINUTE_MS

interface Waiting {
  readonly events: Envelope[]
  readonly texts: readonly string[]
  readonly bytes: number
  resolve(appended: Appended): void
  reject(error: unknown): void
}

/**
 * Appends events, durably. One write is in flight at a time; whatever arrives meanwhile becomes the next segment, so
 * that an idle ledger adds no latency and a busy one makes fewer, larger segments by itself.
 */
export class Ledger {
  readonly #options: LedgerOptions
  readonly #limits: LedgerLimits
  readonly #paths: Paths
  #queue: Waiting[] = []
  #queuedBytes = 0
  #writing: Promise<void> | undefined

  constructor(options: LedgerOptions) {
    checkScope(options.scope)
    this.#options = options
    this.#limits = { ...ledgerLimits, ...options.limits }
    this.#paths = new Paths(options.scope)
  }

  /** Writes events as one atomic batch. Resolves when they are durable; throws without having written any if one is bad. */
  async append(events: readonly NewEvent[]): Promise<Appended> {
    const envelopes = events.map((event) => this.#envelope(event))
    const texts = envelopes.map((envelope) => canonicalJson(envelope))
    const bytes = this.#checkSize(envelopes, texts)
    if (this.#queuedBytes + bytes > this.#limits.maxWaitingBytes) {
      throw new ServoError('unavailable', 'ledger_busy', `${this.#queuedBytes} bytes are waiting to be written`, {
        hint: 'Slow down and try again.',
      })
    }
    return await new Promise<Appended>((resolve, reject) => {
      this.#queue.push({ events: envelopes, texts, bytes, resolve, reject })
      this.#queuedBytes += bytes
      this.#writing ??= this.#drain()
    })
  }

  /** Resolves when nothing is waiting any more. */
  async flush(): Promise<void> {
    await this.#writing
  }

  #envelope(event: NewEvent): Envelope {
    const { clock, ulid, source, scope } = this.#options
    const { definition } = event
    const parsed = definition.parse(event.payload)
    if (!parsed.success) {
      const issue = parsed.error.issues[0]
      throw badPayload(definition, issue?.path ?? [], issue?.message ?? 'is not valid')
    }
    const unknown = unknownField(event.payload, parsed.data)
    if (unknown !== undefined) throw badPayload(definition, unknown, 'is not a field of this event')
    const envelope = {
      event_id: ulid(),
      event_type: definition.type,
      event_version: definition.version,
      timestamp: toIso(clock.now()),
      source,
      tenant_id: scope.tenant_id,
      workspace_id: scope.workspace_id,
      idempotency_key: definition.idempotencyKey(parsed.data),
      correlation_id: event.correlation_id,
      causation_id: event.causation_id,
      traceparent: event.traceparent,
      actor: event.actor,
      payload: parsed.data,
    }
    const checked = checkEnvelope.safeParse(envelope)
    if (!checked.success) {
      const issue = checked.error.issues[0]
      const field = issue?.path.join('.')
      throw new ServoError('invalid', 'bad_envelope', `${definition.type}: ${field}: ${issue?.message}`, {
        facts: { event_type: definition.type, field },
      })
    }
    return checked.data
  }

  #checkSize(envelopes: readonly Envelope[], texts: readonly string[]): number {
    if (envelopes.length === 0) throw new ServoError('invalid', 'empty_append', 'an append needs at least one event')
    let total = 0
    for (const [i, text] of texts.entries()) {
      const bytes = Buffer.byteLength(text)
      if (bytes > this.#limits.maxEventBytes)
        throw tooLarge(`a ${envelopes[i]?.event_type} event`, bytes, this.#limits.maxEventBytes)
      total += bytes + 1
    }
    if (total > this.#limits.maxSegmentBytes) throw tooLarge('the batch', total, this.#limits.maxSegmentBytes)
    return total
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#takeBatch()
      try {
        const segment = await this.#write(batch)
        this.#announce(segment)
        for (const waiting of batch) waiting.resolve({ segment: segment.ulid, events: waiting.events })
      } catch (error) {
        for (const waiting of batch) waiting.reject(error)
      }
    }
    this.#writing = undefined
  }

  #announce(segment: Segment): void {
    try {
      this.#options.onDurable?.(segment)
    } catch {
      // The segment is durable, so its appends succeed. Whoever failed to listen finds it by listing.
    }
  }

  #takeBatch(): Waiting[] {
    let bytes = 0
    let count = 0
    for (const waiting of this.#queue) {
      if (count > 0 && bytes + waiting.bytes > this.#limits.maxSegmentBytes) break
      bytes += waiting.bytes
      count += 1
    }
    this.#queuedBytes -= bytes
    return this.#queue.splice(0, count)
  }

  async #write(batch: readonly Waiting[]): Promise<Segment> {
    const { clock, ulid: mint } = this.#options
    const bytes = encodeSegment(batch.flatMap((waiting) => waiting.texts))
    const events = batch.flatMap((waiting) => waiting.events)
    let ulid = mint()
    for (let attempt = 1; ; attempt++) {
      if (clock.now() - ulidTime(ulid) > REMINT_AFTER_MS) {
        // An earlier try may have got through although nobody heard of it: then this is where the segment is.
        if (attempt > 1 && (await this.#holds(this.#paths.segment(ulid), bytes).catch(() => false))) return { ulid, events }
        // A name that is too old might lie behind what listings still look at.
        ulid = mint()
      }
      const outcome = await this.#create(this.#paths.segment(ulid), bytes)
      if (outcome === 'written') return { ulid, events }
      if (outcome === 'taken') ulid = mint()
      else if (attempt >= this.#limits.maxAttempts || !isServoError(outcome.error, 'unavailable')) throw outcome.error
      else await clock.sleep(Math.min(2_000, 25 * 2 ** attempt))
    }
  }

  /** A write that timed out may have succeeded; its retry then finds its own bytes there, and that is success. */
  async #create(path: string, bytes: Uint8Array): Promise<'written' | 'taken' | { error: unknown }> {
    try {
      if ((await this.#options.store.create(path, bytes)) === 'written') return 'written'
      return (await this.#holds(path, bytes)) ? 'written' : 'taken'
    } catch (error) {
      return { error }
    }
  }

  async #holds(path: string, bytes: Uint8Array): Promise<boolean> {
    const found = await this.#options.store.get(path)
    return found !== undefined && Buffer.compare(found, bytes) === 0
  }
}

function badPayload(definition: EventDefinition, path: readonly PropertyKey[], why: string): ServoError {
  const field = ['payload', ...path.map(String)].join('.')
  return new ServoError('invalid', 'bad_payload', `${definition.type}: ${field}: ${why}`, {
    hint: `See the ${definition.type} event in the reference for what it holds.`,
    facts: { event_type: definition.type, field },
  })
}

/**
 * Where the input has something that checking it left out: a misspelt field would be a fact that nobody recorded. What
 * was passed through unseen is copied on the way, because a caller that changes it later must not change what is folded.
 */
function unknownField(input: unknown, checked: unknown): PropertyKey[] | undefined {
  if (!isObject(input) || !isObject(checked)) return undefined
  for (const key of Array.isArray(input) ? input.keys() : Object.keys(input)) {
    const value = input[key]
    if (value === undefined) continue
    if (!Object.hasOwn(checked, key)) return [key]
    if (!isObject(value)) continue
    if (checked[key] === value) checked[key] = JSON.parse(canonicalJson(value))
    else {
      const deeper = unknownField(value, checked[key])
      if (deeper !== undefined) return [key, ...deeper]
    }
  }
  return undefined
}

const isObject = (value: unknown): value is Record<PropertyKey, unknown> => typeof value === 'object' && value !== null

function tooLarge(what: string, bytes: number, limit: number): ServoError {
  return new ServoError('invalid', 'too_large', `${what} has ${bytes} bytes, the limit is ${limit}`, {
    hint: 'Store large values as objects and put a reference into the event, or split the batch.',
    facts: { bytes, limit },
  })
}
