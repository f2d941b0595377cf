import { itemAt } from '../lib/collections/item-at.ts'
import { digitsOf, type KeyList, product } from './key-list.ts'
import type { PartitionSet } from './partition-set.ts'
import { points, type Spans, span } from './spans.ts'

/** Some of the partitions of a set: spans of positions or, for several dimensions, the product of spans in each. */
export interface KeyRange extends KeyList {
  readonly set: PartitionSet
  /** One for each dimension of the set, in its order; one in all when it has a single dimension. */
  readonly spans: readonly Spans[]
  has(key: string): boolean
}

export function keyRange(set: PartitionSet, spans: readonly Spans[]): KeyRange {
  const dimensions = set.dimensions.map(({ name, set }, i) => ({ name, keys: keysWithin(set, itemAt(spans, i)) }))
  const keys = dimensions.length === 0 ? keysWithin(set, itemAt(spans, 0)) : product(dimensions)
  return {
    set,
    spans,
    count: keys.count,
    at: keys.at,
    has(key) {
      const position = set.positionOf(key)
      return position !== undefined && positionsIn(set, position).every((digit, i) => itemAt(spans, i).has(digit))
    },
  }
}

const keysWithin = (set: PartitionSet, spans: Spans): KeyList => ({
  count: spans.count,
  at: (index) => set.at(spans.at(index)),
})

/** The sets of the dimensions, or the set itself when it has one. */
export function partsOf(set: PartitionSet): readonly PartitionSet[] {
  return set.dimensions.length === 0 ? [set] : set.dimensions.map((dimension) => dimension.set)
}

/** The position in each dimension of a position in the whole. */
export function positionsIn(set: PartitionSet, position: number): readonly number[] {
  return digitsOf(
    position,
    partsOf(set).map(({ count }) => count),
  )
}

export function allOf(set: PartitionSet): KeyRange {
  return keyRange(
    set,
    partsOf(set).map(({ count }) => span(0, count - 1)),
  )
}

/** Partitions here and there. In several dimensions they do not form a product, so each is a range of its own. */
export function someOf(set: PartitionSet, positions: readonly number[]): readonly KeyRange[] {
  if (positions.length === 0) return []
  if (set.dimensions.length === 0) return [keyRange(set, [points(positions)])]
  return [...new Set(positions)].map((position) =>
    keyRange(
      set,
      positionsIn(set, position).map((digit) => span(digit, digit)),
    ),
  )
}
