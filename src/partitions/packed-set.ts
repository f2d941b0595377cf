import { squeezeNumbers, unsqueezeNumbers } from '../lib/collections/squeezed-numbers.ts'
import { packSpans, type Spans, unpackSpans } from './spans.ts'

/** Positions as they are stored: pairs of numbers, how many are left out and how many taken; or, if those were many, the same squeezed into text. */
export type PackedSet = number[] | string

/** Up to here people can read it, and squeezing would save little. */
const MANY_NUMBERS = 1_000
/** Of the numbers behind a text: those of ten million partitions, none beside another. */
const MAX_BYTES = 32 << 20
/** Few backfills go on at a time, and each asks for its set again and again. */
const KEPT = 16
const unpacked = new Map<string, Spans>()

/**
 * Packs a set of positions, however far they lie apart. Which of a million are meant takes a million bits at the most, and what is left
 * after squeezing is not far from that.
 */
export function packSet(set: Spans): PackedSet {
  const numbers = packSpans(set)
  return numbers.length <= MANY_NUMBERS ? numbers : squeezeNumbers(numbers)
}

/** What `packSet` has made. The same is read once. */
export function unpackSet(packed: readonly number[] | string): Spans {
  if (typeof packed !== 'string') return unpackSpans(packed)
  const known = unpacked.get(packed)
  if (known !== undefined) return known
  const made = unpackSpans(unsqueezeNumbers(packed, MAX_BYTES))
  for (const oldest of unpacked.keys()) {
    if (unpacked.size < KEPT) break
    unpacked.delete(oldest)
  }
  unpacked.set(packed, made)
  return made
}

/** True if a text can be read. */
export function isPackedSet(text: string): boolean {
  try {
    const numbers = unsqueezeNumbers(text, MAX_BYTES)
    return numbers.length >= 2 && numbers.length % 2 === 0 && numbers.every(Number.isSafeInteger)
  } catch {
    return false
  }
}
