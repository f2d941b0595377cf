import { z } from 'zod'
import { ServoError } from '../lib/error.ts'
import { type Envelope, envelopeSchema } from '../model/envelope.ts'
import type { Scope } from './paths.ts'
import { openJson, sealText } from './sealed-json.ts'

/** One atomic batch of events as the ledger holds it. */
export interface Segment {
  readonly ulid: string
  readonly events: readonly Envelope[]
}

const segmentSchema = z.compile(z.array(envelopeSchema).min(1))

/** A segment from the canonical text of each of its events. */
export function encodeSegment(eventTexts: readonly string[]): Uint8Array {
  return sealText('events', `[${eventTexts.join(',')}]`)
}

/** Reads a segment from anywhere: whole, of this scope, and with proper envelopes, or not at all. */
export function decodeSegment(bytes: Uint8Array, path: string, scope: Scope): Envelope[] {
  const parsed = segmentSchema.safeParse(openJson('events', bytes, path))
  if (!parsed.success) {
    throw new ServoError(
      'corrupt',
      'bad_segment',
      `${path} does not hold event envelopes: ${parsed.error.issues[0]?.message ?? 'unknown reason'}`,
      {
        hint: 'Something other than Servo wrote it. Move it out of the ledger.',
        facts: { path },
      },
    )
  }
  for (const event of parsed.data) {
    if (event.tenant_id !== scope.tenant_id || event.workspace_id !== scope.workspace_id) {
      throw new ServoError('corrupt', 'foreign_segment', `${path} holds events of ${event.tenant_id}/${event.workspace_id}`, {
        hint: 'Move it to the ledger it belongs to.',
        facts: { path },
      })
    }
  }
  return parsed.data
}
