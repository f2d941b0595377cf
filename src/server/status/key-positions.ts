import type { Texts } from '../../engine/column-block.ts'
import { readKey } from '../../partitions/key.ts'
import type { PartitionSet } from '../../partitions/partition-set.ts'

/** What finds the positions of keys: -1 for a key that the set does not have (any more). */
export interface KeyPositions {
  /** Of the keys from `from` up to, and without, `to`, which are in the order of their texts. */
  of(keys: Texts, from: number, to: number): Int32Array
}

/** So many neighbours are asked one by one: halving them further would ask as often. */
const FEW = 8

/**
 * Positions of many keys at once. Neighbours in a file are mostly neighbours in the set: windows of time at equal distances, as
 * many as there are positions between the first and the last, are those positions, and nobody has to ask for each.
 */
export function keyPositions(set: PartitionSet): KeyPositions {
  const positionOf = finder(set)
  return {
    of(keys, from, to) {
      const positions = new Int32Array(to - from)
      const find = (row: number): number => {
        positions[row - from] = positionOf(keys.at(row)) ?? -1
        return positions[row - from] as number
      }
      if (set.axis === undefined || keys.raw === undefined || to - from <= FEW) {
        for (let row = from; row < to; row++) find(row)
        return positions
      }
      const open = [{ low: from, high: to - 1, first: find(from), last: find(to - 1) }]
      for (let part = open.pop(); part !== undefined; part = open.pop()) {
        const { low, high, first, last } = part
        if (first >= 0 && last - first === high - low && areEvenlySpaced(keys.raw, low, high)) {
          for (let row = low; row <= high; row++) positions[row - from] = first + row - low
        } else if (high - low <= FEW) {
          for (let row = low + 1; row < high; row++) find(row)
        } else {
          const middle = (low + high) >>> 1
          const at = find(middle)
          open.push({ low, high: middle, first, last: at }, { low: middle, high, first: at, last })
        }
      }
      return positions
    },
  }
}

/** Of several dimensions, each has few values: they are looked up once. */
function finder(set: PartitionSet): (key: string) => number | undefined {
  const { dimensions } = set
  if (dimensions.length === 0) return (key) => set.positionOf(key)
  const known = dimensions.map(() => new Map<string, number>())
  const names = new Set(dimensions.map(({ name }) => name))
  return (key) => {
    const values = readable(key)
    if (values === undefined || Object.keys(values).length !== names.size) return undefined
    let position = 0
    for (const [i, { name, set: dimension }] of dimensions.entries()) {
      const value = values[name]
      if (value === undefined) return undefined
      const seen = known[i] as Map<string, number>
      let at = seen.get(value)
      if (at === undefined) {
        at = dimension.positionOf(value) ?? -1
        seen.set(value, at)
      }
      if (at < 0) return undefined
      position = position * dimension.count + at
    }
    return position
  }
}

/** A key of an earlier definition may be no list of dimensions. */
function readable(key: string): Readonly<Record<string, string>> | undefined {
  try {
    return readKey(key)
  } catch {
    return undefined
  }
}

/** Whether the times that keys show follow each other at one distance. Keys in another form than ours are not judged. */
function areEvenlySpaced({ bytes, starts }: NonNullable<Texts['raw']>, low: number, high: number): boolean {
  const timeAt = (row: number): number => wallMinutes(bytes, starts[row] as number, (starts[row + 1] as number) - 4)
  let before = timeAt(low)
  const step = timeAt(low + 1) - before
  if (!(step > 0)) return false
  for (let row = low + 1; row <= high; row++) {
    const time = timeAt(row)
    if (time - before !== step) return false
    before = time
  }
  return true
}

const ZERO = 48
const DASH = 45
const COLON = 58
const T = 84

/** What `2025-01-15`, `2025-01-15T10` or `2025-01-15T10:30` shows, in minutes; NaN for anything else. */
function wallMinutes(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start
  if (length !== 10 && length !== 13 && length !== 16) return Number.NaN
  if (bytes[start + 4] !== DASH || bytes[start + 7] !== DASH) return Number.NaN
  const year = two(bytes, start) * 100 + two(bytes, start + 2)
  let minutes = daysBefore(year, two(bytes, start + 5), two(bytes, start + 8)) * 1_440
  if (length === 10) return minutes
  if (bytes[start + 10] !== T) return Number.NaN
  minutes += two(bytes, start + 11) * 60
  if (length === 13) return minutes
  return bytes[start + 13] === COLON ? minutes + two(bytes, start + 14) : Number.NaN
}

/** Two digits; NaN when they are none. */
function two(bytes: Uint8Array, at: number): number {
  const [tens, ones] = [(bytes[at] as number) - ZERO, (bytes[at + 1] as number) - ZERO]
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN
}

/** Days since a day long ago, by the calendar: March is the first month, so that the day that may be missing is the last. */
function daysBefore(year: number, month: number, day: number): number {
  const y = month > 2 ? year : year - 1
  const m = (month + 9) % 12
  return 365 * y + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + Math.floor((153 * m + 2) / 5) + day
}
