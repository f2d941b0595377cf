import { z } from 'zod'
import { hasNoControlCharacters } from '../lib/text/control-characters.ts'
import { isUlid } from '../lib/ulid.ts'

/** ISO 8601 in UTC, as `Date.prototype.toISOString` writes it. */
export const timestamp = z.iso.datetime({ offset: false })

/** Longer than any id Servo makes; short enough that an id cannot be used to fill a disk. */
const MAX_ID = 512

const NO_CONTROL_CHARACTERS = 'must not contain control characters'

/** Text of one line: a text that becomes part of a key must not be able to imitate the end of one. */
const line = (maxLength: number) => z.string().max(maxLength).refine(hasNoControlCharacters, NO_CONTROL_CHARACTERS)

/** Any id that people or other systems choose: kept as it is, but never empty, unbounded, or able to break a line. */
export const id = line(MAX_ID).min(1)
/** A partition's canonical key; empty for an asset without partitions. */
export const partitionKey = line(MAX_ID)
/** Longer than an id, because it is made of several. */
export const runKey = line(2 * MAX_ID).min(1)
export const fingerprint = line(128).min(1)
const ulid = z.string().refine(isUlid, 'must be a ULID')
export const count = z.number().int().min(0).max(2_147_483_647)
export const textMap = z
  .record(line(MAX_ID), z.string().max(8_192))
  .refine((map) => !Object.hasOwn(map, '__proto__'), 'must not have the key __proto__')

/** What every event carries around its payload. Optional members are absent, not null. */
export const envelopeSchema = z.object({
  event_id: ulid,
  event_type: id,
  event_version: count,
  /** When the server received the fact; never a worker's clock. */
  timestamp,
  /**
   * How far this clock is behind: events on record have later times than it shows. Facts are ordered by `timestamp` and this, so that
   * what is recorded next is later than what is on record. Absent if the clock is not behind.
   */
  behind_ms: z.number().int().min(1).optional(),
  source: id,
  tenant_id: id,
  workspace_id: id,
  idempotency_key: line(4 * MAX_ID).min(1),
  correlation_id: id.optional(),
  causation_id: id.optional(),
  traceparent: id.optional(),
  actor: id.optional(),
  payload: z.record(z.string(), z.unknown()),
})

export type Envelope = z.infer<typeof envelopeSchema>

/** The caller chooses these; the rest comes from the ledger or was checked with the payload. */
export type FreeText = Pick<
  Envelope,
  'source' | 'correlation_id' | 'causation_id' | 'traceparent' | 'actor' | 'idempotency_key'
>

/** The problem with the free text of a new envelope. The whole schema finds the same, at ten times the cost. */
export function badFreeText(texts: FreeText): { field: string; message: string } | undefined {
  for (const field of ['source', 'correlation_id', 'causation_id', 'traceparent', 'actor', 'idempotency_key'] as const) {
    const text = texts[field]
    if (text === undefined) continue
    const most = field === 'idempotency_key' ? 4 * MAX_ID : MAX_ID
    if (typeof text !== 'string' || text.length === 0) return { field, message: 'must be text, and not empty' }
    if (text.length > most) return { field, message: `must have at most ${most} characters` }
    if (!hasNoControlCharacters(text)) return { field, message: NO_CONTROL_CHARACTERS }
  }
  return undefined
}
