import { assert } from '../../lib/assert.ts'
import type { Sequence, Sequenced } from './sequence.ts'

/** The place of a segment in the order of consumption. Until the segment is durable it may have no name, or get another one. */
export interface Consumed {
  ulid?: string
  sequence?: Sequence | undefined
  isDurable?: boolean
}

/** The names of segments that have one; the others are not in the ledger yet. */
export const segmentNamesSoFar = (consumed: readonly Consumed[]): string[] => consumed.flatMap(({ ulid }) => ulid ?? [])

/** Segments that are durable, with the names that they have now. */
export function durableSegments(consumed: readonly Consumed[]): Sequenced[] {
  return consumed.map(({ ulid, sequence }) => {
    assert(ulid !== undefined, 'a segment that is to be published has no name')
    return { ulid, sequence }
  })
}

/** The names of segments up to the first that is not durable yet. */
export function durableSoFar(consumed: readonly Consumed[]): string[] {
  const end = consumed.findIndex(({ isDurable }) => !isDurable)
  return segmentNamesSoFar(end < 0 ? consumed : consumed.slice(0, end))
}
