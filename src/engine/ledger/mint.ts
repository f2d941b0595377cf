import { ServoError } from '../../lib/error.ts'
import { isObject } from '../../lib/is-object.ts'
import { canonicalJson } from '../../lib/json.ts'
import { toIso } from '../../lib/time.ts'
import type { UlidSource } from '../../lib/ulid.ts'
import { badFreeText, type Envelope } from '../../model/envelope.ts'
import type { EventDefinition, NewEvent } from '../../model/event.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Scope } from '../paths.ts'
import type { EventClock } from './event-clock.ts'

export interface MintOptions {
  readonly scope: Scope
  readonly clock: Clock
  readonly ulid: UlidSource
  /** Who writes, e.g. `servo/api`. */
  readonly source: string
  /** Of a process that knows what is on record: ids and times go on from there. */
  readonly eventClock?: EventClock
}

export interface SizeLimits {
  /** One event. Larger values belong in the object store, with a reference in the event. */
  readonly maxEventBytes: number
  /** One append, and with it one segment, which is read into memory whole. */
  readonly maxSegmentBytes: number
}

export const sizeLimits: SizeLimits = { maxEventBytes: 1 << 20, maxSegmentBytes: 32 << 20 }

/** Events with ids, time and scope, and the text in which they will be stored. */
export interface Minted {
  readonly events: readonly Envelope[]
  /** The same events, each with the definition it was checked with. */
  readonly checked: readonly CheckedEvent[]
  readonly texts: readonly string[]
  readonly bytes: number
}

/** An event that was made in this process, and the definition it was checked with. */
export interface CheckedEvent {
  readonly event: Envelope
  readonly definition: EventDefinition
}

/** The payload of an event as it was checked, and what follows from it. */
interface CheckedPayload {
  readonly payload: Record<string, unknown>
  readonly text: string
  readonly idempotencyKey: string
}

/** Payloads that were checked before their events are minted. */
const prepared = new WeakMap<NewEvent, CheckedPayload>()

/** Checks events that will probably be minted soon. One that is bad is left to be refused then. */
export function prepareEvents(events: readonly NewEvent[]): void {
  for (const event of events) {
    try {
      const checked = checkedPayload(event)
      // Text that was put together of many pieces becomes one when it is measured; this takes as long as all else that is left to mint.
      Buffer.byteLength(checked.text)
      prepared.set(event, checked)
    } catch {
      return
    }
  }
}

/** Checks events against their definitions and makes them ready to be written. If one is bad, it throws and makes none. */
export function mintEvents(options: MintOptions, limits: SizeLimits, events: readonly NewEvent[]): Minted {
  if (events.length === 0) throw new ServoError('invalid', 'empty_append', 'an append needs at least one event')
  const minted: { -readonly [K in keyof Minted]: Minted[K] extends readonly (infer T)[] ? T[] : Minted[K] } = {
    events: [],
    checked: [],
    texts: [],
    bytes: 0,
  }
  for (const newEvent of events) {
    const checked = prepared.get(newEvent) ?? checkedPayload(newEvent)
    const event = envelopeOf(options, newEvent, checked)
    const text = envelopeText(event, checked.text)
    const bytes = Buffer.byteLength(text)
    if (bytes > limits.maxEventBytes) throw tooLarge(`a ${event.event_type} event`, bytes, limits.maxEventBytes)
    minted.events.push(event)
    minted.checked.push({ event, definition: newEvent.definition })
    minted.texts.push(text)
    minted.bytes += bytes + 1
  }
  if (minted.bytes > limits.maxSegmentBytes) throw tooLarge('the batch', minted.bytes, limits.maxSegmentBytes)
  return minted
}

function checkedPayload(event: NewEvent): CheckedPayload {
  const { definition } = event
  const parsed = definition.parse(event.payload)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw badPayload(definition, issue?.path ?? [], issue?.message ?? 'is not valid')
  }
  const unknown = unknownField(event.payload, parsed.data)
  if (unknown !== undefined) throw badPayload(definition, unknown, 'is not a field of this event')
  const payload = parsed.data
  return { payload, text: canonicalJson(payload), idempotencyKey: definition.idempotencyKey(payload) }
}

function envelopeOf(
  { clock, ulid, source, scope, eventClock }: MintOptions,
  event: NewEvent,
  { payload, idempotencyKey }: CheckedPayload,
): Envelope {
  const { definition } = event
  const event_id = eventClock?.mint() ?? ulid()
  const envelope: Envelope = {
    event_id,
    event_type: definition.type,
    event_version: definition.version,
    timestamp: toIso(eventClock?.now ?? clock.now()),
    tenant_id: scope.tenant_id,
    workspace_id: scope.workspace_id,
    source,
    idempotency_key: idempotencyKey,
    payload,
  }
  // Optional members are absent, not undefined: an envelope looks the same before it was stored and after.
  if (eventClock !== undefined && eventClock.behindMs > 0) envelope.behind_ms = eventClock.behindMs
  if (event.correlation_id !== undefined) envelope.correlation_id = event.correlation_id
  if (event.causation_id !== undefined) envelope.causation_id = event.causation_id
  if (event.traceparent !== undefined) envelope.traceparent = event.traceparent
  if (event.actor !== undefined) envelope.actor = event.actor
  const bad = badFreeText(envelope)
  if (bad !== undefined) {
    throw new ServoError('invalid', 'bad_envelope', `${definition.type}: ${bad.field}: ${bad.message}`, {
      facts: { event_type: definition.type, field: bad.field },
    })
  }
  return envelope
}

/** The canonical JSON of an envelope. Its members are written in canonical order, so that only their values need escaping. */
function envelopeText(envelope: Envelope, payload: string): string {
  const { actor, behind_ms, causation_id, correlation_id, traceparent } = envelope
  let text = '{'
  if (actor !== undefined) text += `"actor":${canonicalJson(actor)},`
  if (behind_ms !== undefined) text += `"behind_ms":${behind_ms},`
  if (causation_id !== undefined) text += `"causation_id":${canonicalJson(causation_id)},`
  if (correlation_id !== undefined) text += `"correlation_id":${canonicalJson(correlation_id)},`
  text += `"event_id":"${envelope.event_id}","event_type":${canonicalJson(envelope.event_type)},"event_version":${envelope.event_version}`
  text += `,"idempotency_key":${canonicalJson(envelope.idempotency_key)},"payload":${payload}`
  text += `,"source":${canonicalJson(envelope.source)},"tenant_id":"${envelope.tenant_id}","timestamp":"${envelope.timestamp}"`
  if (traceparent !== undefined) text += `,"traceparent":${canonicalJson(traceparent)}`
  return `${text},"workspace_id":"${envelope.workspace_id}"}`
}

function badPayload(definition: EventDefinition, path: readonly PropertyKey[], why: string): ServoError {
  const field = ['payload', ...path.map(String)].join('.')
  return new ServoError('invalid', 'bad_payload', `${definition.type}: ${field}: ${why}`, {
    hint: `See the ${definition.type} event in the reference for what it holds.`,
    facts: { event_type: definition.type, field },
  })
}

/**
 * The path of a field that the check left out, if there is one: without this, a misspelt field would be lost in silence. Values that
 * the check passes on as they are get copied on the way, so that a caller that changes one later does not change what is folded.
 */
function unknownField(input: unknown, checked: unknown): PropertyKey[] | undefined {
  if (!isObject(input) || !isObject(checked)) return undefined
  for (const key of Object.keys(input)) {
    const value = input[key]
    if (value === undefined) continue
    const known = checked[key]
    if (known === value) {
      if (isObject(value)) checked[key] = JSON.parse(canonicalJson(value))
      continue
    }
    if (!Object.hasOwn(checked, key)) return [key]
    const deeper = unknownField(value, known)
    if (deeper !== undefined) return [key, ...deeper]
  }
  return undefined
}

function tooLarge(what: string, bytes: number, limit: number): ServoError {
  return new ServoError('invalid', 'too_large', `${what} has ${bytes} bytes; the limit is ${limit}`, {
    hint: 'Store large values as objects and put a reference into the event, or split the batch.',
    facts: { bytes, limit },
  })
}
