import fc from 'fast-check'
import { orchestration } from '../../domain/index.ts'
import { itemAt } from '../../lib/collections/item-at.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { EventDefinition } from '../../model/event.ts'
import { SimulatedWriter } from './writers.ts'

const definitions = new Map<string, EventDefinition>(orchestration.events.map((definition) => [definition.type, definition]))

interface ReadEvent {
  readonly envelope: Envelope
  /** Undefined for what Servo does not understand: it is only kept, so its place does not matter. */
  readonly definition: EventDefinition | undefined
  // biome-ignore lint/suspicious/noExplicitAny: payloads of every shape.
  readonly payload: any
}

const facts = new WeakMap<Envelope, ReadEvent>()

function read(envelope: Envelope): ReadEvent {
  const known = facts.get(envelope)
  if (known !== undefined) return known
  const definition = definitions.get(envelope.event_type)
  const parsed =
    definition === undefined || envelope.event_version > definition.version ? undefined : definition.parse(envelope.payload)
  const fact = parsed?.success
    ? { envelope, definition, payload: parsed.data }
    : { envelope, definition: undefined, payload: undefined }
  facts.set(envelope, fact)
  return fact
}

export const isUnderstood = (envelope: Envelope): boolean => read(envelope).definition !== undefined

function declares(mine: ReadEvent, other: ReadEvent): boolean {
  for (const { with: types, when } of mine.definition?.ordered ?? []) {
    if ((types.includes('*') || types.includes(other.envelope.event_type)) && when(mine.payload, other.payload)) return true
  }
  return false
}

/** True if the order of two events matters: one declares it, or both have the same idempotency key and the first counts. */
function areOrdered(a: ReadEvent, b: ReadEvent): boolean {
  if (a.definition === undefined || b.definition === undefined) return false
  return a.envelope.idempotency_key === b.envelope.idempotency_key || declares(a, b) || declares(b, a)
}

/** For each event, those before it that must stay before it. */
function predecessors(events: readonly Envelope[]): number[][] {
  const all = events.map(read)
  return all.map((fact, at) => {
    const before: number[] = []
    for (const [index, earlier] of all.slice(0, at).entries()) if (areOrdered(earlier, fact)) before.push(index)
    return before
  })
}

/** Events moved to other places: pairs of (which one, where to), both as fractions of a thousand. */
export type Moves = readonly (readonly [number, number])[]

/** Few moves or many; shrinks to the one or two that matter. */
export const moves: fc.Arbitrary<Moves> = fc.oneof(
  fc.array(fc.tuple(fc.nat({ max: 999 }), fc.nat({ max: 999 })), { maxLength: 4 }),
  fc.array(fc.tuple(fc.nat({ max: 999 }), fc.nat({ max: 999 })), { maxLength: 300, size: 'max' }),
)

/** An event that is not in the new order yet. */
interface PendingEvent {
  readonly envelope: Envelope
  priority: number
  /** How many events that must come before it have not come yet. */
  waitsFor: number
  /** The events that must come after it. */
  readonly before: PendingEvent[]
}

/** The events in another order that keeps every pair whose order matters: as the moves ask, as far as that allows. */
export function legalPermutation(events: readonly Envelope[], wanted: Moves): Envelope[] {
  const waiting = events.map((envelope, index): PendingEvent => ({ envelope, priority: index, waitsFor: 0, before: [] }))
  for (const [which, to] of wanted)
    itemAt(waiting, Math.floor((which * events.length) / 1_000)).priority = (to * events.length) / 1_000
  for (const [at, earlier] of predecessors(events).entries()) {
    const later = itemAt(waiting, at)
    later.waitsFor = earlier.length
    for (const index of earlier) itemAt(waiting, index).before.push(later)
  }
  const free = waiting.filter(({ waitsFor }) => waitsFor === 0)
  const order: Envelope[] = []
  while (free.length > 0) {
    const first = free.reduce((best, each) => (each.priority < best.priority ? each : best))
    free.splice(free.indexOf(first), 1)
    order.push(first.envelope)
    for (const next of first.before) if (--next.waitsFor === 0) free.push(next)
  }
  return order
}

/**
 * Declarations are registers: the one with the newest id stands, so a declaration repeated under a new id is a new one.
 * An event of an unknown type is only kept, each copy of it. Any other event may be repeated under another id at any time.
 */
export const mayBeReminted = (event: Envelope): boolean =>
  !declarations.has(event.event_type) && read(event).definition !== undefined
const declarations = new Set(['AssetsDefined'])

/** Copies of events inserted somewhere after them: the same event again, or the same fact under a new id. */
export function withCopies(
  events: readonly Envelope[],
  copies: Moves,
  reminted: (event: Envelope, copy: number) => boolean = () => false,
): Envelope[] {
  const result: { envelope: Envelope; at: number }[] = events.map((envelope, at) => ({ envelope, at }))
  copies.forEach(([which, to], index) => {
    const at = Math.floor((which * events.length) / 1_000)
    const original = itemAt(events, at)
    const place = at + ((events.length - at) * to) / 1_000 + 0.5
    result.push({ envelope: reminted(original, index) ? remint(original, index) : original, at: place })
  })
  return result.sort((a, b) => a.at - b.at).map(({ envelope }) => envelope)
}

/** The same fact as another process would have written it, its clock ahead or behind. */
function remint(original: Envelope, index: number): Envelope {
  const skew = index % 2 === 0 ? -600_000 : 600_000
  const writer = new SimulatedWriter(8 + (index % 16), skew + index, () => Date.parse(original.timestamp))
  return { ...original, ...writer.stamp() }
}
