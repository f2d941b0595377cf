import { z } from 'zod'
import { ServoError } from '../../lib/error.ts'
import { type Envelope, envelopeSchema } from '../../model/envelope.ts'
import { CHECKSUM_BYTES, checksummedList, readChecksummed, readChecksummedMembers } from '../files/checksummed-json.ts'
import type { Scope } from '../paths.ts'
import { formatSequence, parseSequence, type Sequence } from './sequence.ts'

/** One atomic batch of events as the ledger holds it. */
export interface Segment {
  readonly ulid: string
  readonly events: readonly Envelope[]
  /** Absent in segments of earlier versions. */
  readonly sequence?: Sequence | undefined
}

const segmentSchema = z.compile(z.array(envelopeSchema).min(1))

/**
 * A segment from the canonical text of each of its events. Its checksum covers its name, so that it cannot pass for another. Versions that
 * do not know of sequences read it too: what comes before the checksum is a text.
 */
export function encodeSegment(ulid: string, eventTexts: readonly string[], sequence?: Sequence): Uint8Array {
  const place = sequence === undefined ? '' : `,"sequence":"${formatSequence(sequence)}"`
  return checksummedList('events', eventTexts, `"segment":"${ulid}"${place}`)
}

/** The events of a segment. Throws `corrupt` unless it is whole, belongs to this scope and holds valid envelopes. */
export const decodeSegment = (bytes: Uint8Array, path: string, scope: Scope): readonly Envelope[] =>
  openSegment(bytes, path, scope).events

/** A segment under its name. Throws like `decodeSegment`. */
export function openSegment(bytes: Uint8Array, path: string, scope: Scope): Segment {
  const { events, sequence } = open(bytes, path)
  const parsed = segmentSchema.safeParse(events)
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
  return { ulid: nameIn(path), events: parsed.data, sequence: parseSequence(sequence) }
}

const nameIn = (path: string): string => path.slice(path.lastIndexOf('/') + 1, -'.json'.length)

interface Members {
  readonly events: unknown
  readonly segment?: unknown
  readonly sequence?: unknown
}

function open(bytes: Uint8Array, path: string): Members {
  if (!isNamed(bytes)) return { events: readChecksummed('events', bytes, path) }
  const members = readChecksummedMembers<Members>(bytes, path)
  if (members.segment !== nameIn(path)) {
    const holds = String(members.segment).slice(0, 40)
    throw new ServoError('corrupt', 'misplaced_segment', `${path} holds the segment ${holds}`, {
      hint: 'It was moved, copied or swapped with another. `servo rebuild` puts it back where it belongs.',
      facts: { path, holds },
    })
  }
  return members
}

/** Segments of earlier versions have no name in them: their checksum follows the end of the list of events. */
const isNamed = (bytes: Uint8Array): boolean => bytes.at(-CHECKSUM_BYTES - 1) === '"'.charCodeAt(0)
