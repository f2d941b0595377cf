import { assert } from '../../lib/assert.ts'

/** The place of a segment in the order of consumption. Until the segment is durable it may have no name, or get another one. */
export interface Consumed {
  ulid?: string
}

/** The names of segments that have one; the others are not in the ledger yet. */
export const segmentNamesSoFar = (consumed: readonly Consumed[]): string[] => consumed.flatMap(({ ulid }) => ulid ?? [])

/** The names of segments that are durable. */
export function segmentNames(consumed: readonly Consumed[]): string[] {
  const names = segmentNamesSoFar(consumed)
  assert(names.length === consumed.length, 'a segment that is to be published has no name')
  return names
}
