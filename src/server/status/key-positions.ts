import { readKey } from '../../partitions/key.ts'
import type { PartitionSet } from '../../partitions/partition-set.ts'

/** What finds the positions of keys: -1 for a key that the set does not have (any more). */
export interface KeyPositions {
  /** Of the keys from `from` up to, and without, `to`, which are in the order of their texts. */
  of(keyAt: (row: number) => string, from: number, to: number): Int32Array
}

/** So many neighbours are asked one by one: halving them further would ask as often. */
const FEW = 8

/**
 * Positions of many keys at once. Neighbours in a file are mostly neighbours in the set, and then nobody has to read the keys
 * between the first and the last: where the order of texts is that of positions, as many keys as positions are all of them.
 */
export function keyPositions(set: PartitionSet): KeyPositions {
  const positionOf = finder(set)
  const ordered = isOrdered(set)
  return {
    of(keyAt, from, to) {
      const positions = new Int32Array(to - from)
      const find = (row: number): number => {
        positions[row - from] = positionOf(keyAt(row)) ?? -1
        return positions[row - from] as number
      }
      if (!ordered) {
        for (let row = from; row < to; row++) find(row)
        return positions
      }
      if (from === to) return positions
      const open = [{ low: from, high: to - 1, first: find(from), last: find(to - 1) }]
      for (let part = open.pop(); part !== undefined; part = open.pop()) {
        const { low, high, first, last } = part
        if (first >= 0 && last - first === high - low) {
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

const SAMPLES = 64

/**
 * Whether texts sort as positions do. Formats of time that do not, such as day before month, show it within a few neighbours.
 * Lists are looked up quickly, in whatever order they are.
 */
function isOrdered(set: PartitionSet): boolean {
  if (set.axis === undefined) return false
  const step = Math.max(1, Math.floor(set.count / SAMPLES))
  let before = ''
  for (let start = 0; start < set.count; start += step) {
    for (let position = start; position < Math.min(start + 2, set.count); position++) {
      const key = set.at(position)
      if (key < before) return false
      before = key
    }
  }
  return true
}
