import { z } from 'zod'
import { ServoError } from '../../lib/error.ts'
import { type Envelope, envelopeSchema } from '../../model/envelope.ts'
import { CHECKSUM_BYTES, checksummedList, readChecksummed, readChecksummedMembers } from '../files/checksummed-json.ts'
import type { Scope } from '../paths.ts'

/** One atomic batch of events as the ledger holds it. */
export interface Segment {
  readonly ulid: string
  readonly events: readonly Envelope[]
}

const segmentSchema = z.compile(z.array(envelopeSchema).min(1))

/** A segment from the canonical text of each of its events. Its checksum covers its name, so that it cannot pass for another. */
export function encodeSegment(ulid: string, eventTexts: readonly string[]): Uint8Array {
  return checksummedList('events', eventTexts, `"segment":"${ulid}"`)
}

/** The events of a segment. Throws `corrupt` unless it is whole, belongs to this scope and holds valid envelopes. */
export function decodeSegment(bytes: Uint8Array, path: string, scope: Scope): Envelope[] {
  const parsed = segmentSchema.safeParse(open(bytes, path))
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

function open(bytes: Uint8Array, path: string): unknown {
  if (!isNamed(bytes)) return readChecksummed('events', bytes, path)
  const { events, segment } = readChecksummedMembers<{ events: unknown; segment: unknown }>(bytes, path)
  if (segment !== path.slice(path.lastIndexOf('/') + 1, -'.json'.length)) {
    throw new ServoError('corrupt', 'misplaced_segment', `${path} holds the segment ${String(segment).slice(0, 40)}`, {
      hint: 'It was moved, copied or swapped with another. Put it back where it belongs.',
      facts: { path },
    })
  }
  return events
}

/** Segments of earlier versions have no name in them: their checksum follows the end of the list of events. */
const isNamed = (bytes: Uint8Array): boolean => bytes.at(-CHECKSUM_BYTES - 1) === '"'.charCodeAt(0)
