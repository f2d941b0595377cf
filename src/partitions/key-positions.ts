import { isTime } from './definition.ts'
import { readKey } from './key.ts'
import type { PartitionSet } from './partition-set.ts'
import { type RawTexts, ShownTimes } from './time/shown-times.ts'

/** The keys of a block of a file, in the order of their texts. */
export interface KeyTexts {
  at(row: number): string
  readonly raw?: RawTexts
}

/** The first key of a block and its last, or else the first key of the block after it. */
export interface KeyEnds {
  readonly first: string
  readonly last?: string | undefined
  readonly next?: string | undefined
}

/** Finds the positions of keys: -1 for a key that the set does not have. */
export interface KeyPositions {
  /** Of all keys of a block at once, by its ends; undefined when the block has to be looked at. */
  ofWhole(rows: number, ends: KeyEnds | undefined): { readonly first: number } | undefined
  /** Of the keys from `from` up to, and without, `to`. */
  of(keys: KeyTexts, from: number, to: number): Int32Array
}

/** Below this many keys, looking them up one by one is as cheap as bisecting further. */
const FEW = 8

/**
 * Finds the positions of many keys at once. Neighbours in a file are mostly neighbours in the set: windows of time at equal
 * distances, as many as there are positions between the first and the last, are those positions, and no key has to be looked up.
 *
 * `onlyItsKeys`: every key that was ever recorded is in the set. Then as many keys as there are positions from one to another
 * are those positions, and need not even be read.
 */
export function keyPositions(set: PartitionSet, onlyItsKeys: boolean): KeyPositions {
  const positionOf = finder(set)
  const even = evenWindows(set)
  const { definition, axis } = set
  // In our own forms of time, texts sort as windows do.
  const isOrdered = axis !== undefined && isTime(definition) && !definition.format
  /** The first of a block is what the block before it ended with. */
  let last: { readonly key: string; readonly position: number | undefined } | undefined
  const place = (key: string): number | undefined => {
    if (last?.key !== key) last = { key, position: positionOf(key) }
    return last.position
  }
  return {
    ofWhole(rows, ends) {
      if (!onlyItsKeys || !isOrdered || ends === undefined) return undefined
      const first = place(ends.first)
      const end = ends.next ?? ends.last
      if (first === undefined || end === undefined) return undefined
      const position = first + rows - (ends.next === undefined ? 1 : 0)
      // Finding a key ends with reading the key at its position: that alone is enough here.
      if (position >= set.count || set.at(position) !== end) return undefined
      last = { key: end, position }
      return { first }
    },
    of(keys, from, to) {
      if (axis === undefined || keys.raw === undefined || to - from <= FEW) return oneByOne(positionOf, keys, from, to)
      const times = new ShownTimes(keys.raw)
      return even === undefined
        ? byHalves(positionOf, keys, times, from, to)
        : byDistance(even, (row) => positionOf(keys.at(row)) ?? -1, times, from, to)
    },
  }
}

type Find = (key: string) => number | undefined

function oneByOne(positionOf: Find, keys: KeyTexts, from: number, to: number): Int32Array {
  const positions = new Int32Array(to - from)
  for (let row = from; row < to; row++) positions[row - from] = positionOf(keys.at(row)) ?? -1
  return positions
}

/** Keys between two that are as far apart in the file as in the set are looked at together; others are halved. */
function byHalves(positionOf: Find, keys: KeyTexts, times: ShownTimes, from: number, to: number): Int32Array {
  const positions = new Int32Array(to - from)
  const find = (row: number): number => {
    const position = positionOf(keys.at(row)) ?? -1
    positions[row - from] = position
    return position
  }
  const open = [{ low: from, high: to - 1, first: find(from), last: find(to - 1) }]
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    const { low, high, first, last } = part
    if (first >= 0 && last - first === high - low && times.areEvenlySpaced(low, high)) {
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
}

const MINUTES: Readonly<Record<string, number>> = { minutely: 1, hourly: 60, daily: 1_440 }

/** Windows of one length without a gap. */
interface EvenWindows {
  /** Minutes of the first window, and between two. */
  readonly first: number
  readonly step: number
  readonly count: number
  /** Bytes that each of their keys has. */
  readonly length: number
}

/** Where no clock is ever changed and nothing left out, positions follow from the times that keys show. */
function evenWindows({ definition, axis, count, at }: PartitionSet): EvenWindows | undefined {
  if (!isTime(definition) || axis?.zone !== 'UTC' || count === 0) return undefined
  const { type, format, exclusions, every } = definition
  const step = MINUTES[type]
  if (step === undefined || format || exclusions?.length || (every ?? 1) !== 1) return undefined
  const bytes = new TextEncoder().encode(at(0))
  const first = new ShownTimes({ bytes, starts: Uint32Array.of(0, bytes.length + 4) })
  return { first: first.minutesOf(0), step, count, length: bytes.length }
}

/** Looks up keys that have none of these windows one by one. */
function byDistance(
  { first, step, count, length }: EvenWindows,
  find: (row: number) => number,
  times: ShownTimes,
  from: number,
  to: number,
): Int32Array {
  const positions = new Int32Array(to - from)
  for (let row = from; row < to; row++) {
    const position = times.lengthOf(row) === length ? (times.minutesOf(row) - first) / step : Number.NaN
    const isWindow = Number.isInteger(position) && position >= 0 && position < count
    positions[row - from] = isWindow ? position : find(row)
  }
  return positions
}

/** Of several dimensions, each has few values: they are looked up once. */
function finder(set: PartitionSet): Find {
  if (set.dimensions.length === 0) return (key) => set.positionOf(key)
  const dimensions = set.dimensions.map((dimension) => ({ ...dimension, seen: new Map<string, number>() }))
  return (key) => {
    const values = readable(key)
    if (values === undefined || Object.keys(values).length !== dimensions.length) return undefined
    let position = 0
    for (const { name, set: dimension, seen } of dimensions) {
      const value = values[name]
      if (value === undefined) return undefined
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
