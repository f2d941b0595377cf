import type { Texts } from '../../../engine/parquet/column-block.ts'
import type { BlockPart } from '../../../engine/sorted/file-columns.ts'
import { isTime } from '../../../partitions/definition.ts'
import { readKey } from '../../../partitions/key.ts'
import type { PartitionSet } from '../../../partitions/partition-set.ts'

/** What finds the positions of keys: -1 for a key that the set does not have (any more). */
export interface KeyPositions {
  /** Of all keys of a block at once, by its ends; undefined when it has to be looked at. */
  ofWhole(rows: number, ends: BlockPart['ends']): { readonly first: number } | undefined
  /** Of the keys from `from` up to, and without, `to`, which are in the order of their texts. */
  of(keys: Texts, from: number, to: number): Int32Array
}

/** So many neighbours are asked one by one: halving them further would ask as often. */
const FEW = 8

/**
 * `onlyItsKeys`: no key was ever recorded that the set does not have. Then as many keys as there are positions from one to
 * another are those positions, and need not even be read.
 *
 * Positions of many keys at once. Neighbours in a file are mostly neighbours in the set: windows of time at equal distances, as
 * many as there are positions between the first and the last, are those positions, and nobody has to ask for each.
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
      const first = place(ends.first.at(-1) as string)
      if (first === undefined) return undefined
      const end = (ends.next ?? ends.last)?.at(-1) as string
      const position = first + rows - (ends.next === undefined ? 1 : 0)
      // Finding a key ends with saying what is at its position: that alone is enough here.
      if (position >= set.count || set.at(position) !== end) return undefined
      last = { key: end, position }
      return { first }
    },
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
      if (even !== undefined) {
        const { bytes, starts } = keys.raw
        for (let row = from; row < to; row++) {
          const start = starts[row] as number
          const length = (starts[row + 1] as number) - 4 - start
          const position = length === even.length ? (minutesShown(bytes, start, length) - even.first) / even.step : Number.NaN
          if (Number.isInteger(position) && position >= 0 && position < set.count) positions[row - from] = position
          else find(row)
        }
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

const MINUTES: Readonly<Record<string, number>> = { minutely: 1, hourly: 60, daily: 1_440 }

/** Where no clock is ever changed and nothing left out, positions follow from the times that keys show. */
function evenWindows({ definition, axis, count, at }: PartitionSet) {
  if (!isTime(definition) || axis?.zone !== 'UTC' || count === 0) return undefined
  const { type, format, exclusions, every } = definition
  const step = MINUTES[type]
  if (step === undefined || format || exclusions?.length || (every ?? 1) !== 1) return undefined
  const first = Buffer.from(at(0))
  return { first: minutesShown(first, 0, first.length), step, length: first.length }
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

/**
 * Whether the times that keys show follow each other at one distance: `2025-01-15`, `2025-01-15T10` or `2025-01-15T10:30`. Keys
 * in another form are not judged. Neighbours mostly share their day, and then only the time of day has to be read.
 */
function areEvenlySpaced({ bytes, starts }: NonNullable<Texts['raw']>, low: number, high: number): boolean {
  const length = (starts[low + 1] as number) - 4 - (starts[low] as number)
  if (length !== 10 && length !== 13 && length !== 16) return false
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let day = Number.NaN
  let [year, month, date] = [0, 0, 0]
  let before = Number.NaN
  let step = Number.NaN
  for (let row = low; row <= high; row++) {
    const start = starts[row] as number
    if ((starts[row + 1] as number) - 4 - start !== length) return false
    if (view.getUint32(start) !== year || view.getUint32(start + 4) !== month || view.getUint16(start + 8) !== date) {
      year = view.getUint32(start)
      month = view.getUint32(start + 4)
      date = view.getUint16(start + 8)
      day = dayShown(bytes, start)
    }
    let time = day * 1_440
    if (length > 10) time += bytes[start + 10] === T ? two(bytes, start + 11) * 60 : Number.NaN
    if (length > 13) time += bytes[start + 13] === COLON ? two(bytes, start + 14) : Number.NaN
    if (row === low + 1) step = time - before
    // What is no number is unequal to everything.
    if (row > low && !(time - before === step && step > 0)) return false
    before = time
  }
  return true
}

const ZERO = 48
const DASH = 45
const COLON = 58
const T = 84

/** The time that a key shows, in minutes; NaN when it shows none. */
function minutesShown(bytes: Uint8Array, start: number, length: number): number {
  const hour = length === 10 ? 0 : bytes[start + 10] === T ? two(bytes, start + 11) : Number.NaN
  const minute = length === 16 ? (bytes[start + 13] === COLON ? two(bytes, start + 14) : Number.NaN) : 0
  if (!(hour < 24 && minute < 60) || (length !== 10 && length !== 13 && length !== 16)) return Number.NaN
  return dayShown(bytes, start) * 1_440 + hour * 60 + minute
}

function dayShown(bytes: Uint8Array, start: number): number {
  if (bytes[start + 4] !== DASH || bytes[start + 7] !== DASH) return Number.NaN
  const year = two(bytes, start) * 100 + two(bytes, start + 2)
  const [month, date] = [two(bytes, start + 5), two(bytes, start + 8)]
  if (!(month >= 1 && month <= 12 && date >= 1)) return Number.NaN
  const day = daysBefore(year, month, date)
  // No month has a day of the next.
  return day < (month < 12 ? daysBefore(year, month + 1, 1) : daysBefore(year + 1, 1, 1)) ? day : Number.NaN
}

/** Two digits; NaN when they are none. */
function two(bytes: Uint8Array, at: number): number {
  const tens = (bytes[at] as number) - ZERO
  const ones = (bytes[at + 1] as number) - ZERO
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN
}

/** Days since a day long ago, by the calendar: March is the first month, so that the day that may be missing is the last. */
function daysBefore(year: number, month: number, day: number): number {
  const y = month > 2 ? year : year - 1
  const m = (month + 9) % 12
  return 365 * y + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + Math.floor((153 * m + 2) / 5) + day
}
