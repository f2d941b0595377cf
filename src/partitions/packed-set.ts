import { squeeze, unsqueeze } from '../lib/squeeze.ts'
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
  if (numbers.length <= MANY_NUMBERS) return numbers
  const bytes: number[] = []
  for (const number of numbers) {
    let rest = number
    // Seven bits at a time, the lowest first; the eighth says that more follow. Positions may need more than 32 bits.
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
    bytes.push(rest)
  }
  return squeeze(Uint8Array.from(bytes))
}

/** What `packSet` has made. The same is read once. */
export function unpackSet(packed: readonly number[] | string): Spans {
  if (typeof packed !== 'string') return unpackSpans(packed)
  const known = unpacked.get(packed)
  if (known !== undefined) return known
  const made = unpackSpans(numbersIn(packed))
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
    const numbers = numbersIn(text)
    return numbers.length >= 2 && numbers.length % 2 === 0 && numbers.every(Number.isSafeInteger)
  } catch {
    return false
  }
}

function numbersIn(text: string): number[] {
  const numbers: number[] = []
  let [value, weight] = [0, 1]
  for (const byte of unsqueeze(text, MAX_BYTES)) {
    value += (byte % 128) * weight
    weight *= 128
    if (byte >= 128) continue
    numbers.push(value)
    ;[value, weight] = [0, 1]
  }
  return numbers
}
