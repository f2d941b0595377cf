import { itemAt } from '../lib/collections/item-at.ts'
import { digitsOf, type KeyList, product } from './key-list.ts'
import type { PartitionSet } from './partition-set.ts'
import { points, type Span, type Spans, span } from './spans.ts'

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

/** Where a range lies in the whole set. The last dimension varies fastest, so what is whole from some dimension on is one span for each digit before. */
export function* spansInSet({ set, spans }: Pick<KeyRange, 'set' | 'spans'>): Iterable<Span> {
  yield* spansFrom(
    partsOf(set).map(({ count }) => count),
    spans,
    0,
    0,
  )
}

function* spansFrom(counts: readonly number[], spans: readonly Spans[], depth: number, base: number): Iterable<Span> {
  const below = counts.slice(depth + 1).reduce((all, count) => all * count, 1)
  const { list } = itemAt(spans, depth)
  if (isWholeBelow(counts, spans, depth)) {
    for (const { from, to } of list) yield { from: base + from * below, to: base + (to + 1) * below - 1 }
    return
  }
  for (const { from, to } of list)
    for (let digit = from; digit <= to; digit++) yield* spansFrom(counts, spans, depth + 1, base + digit * below)
}

const isWholeBelow = (counts: readonly number[], spans: readonly Spans[], depth: number): boolean =>
  counts.every((count, i) => i <= depth || itemAt(spans, i).count === count)

/** How many spans `spansInSet` has, without listing them. */
export function spanCount({ set, spans }: Pick<KeyRange, 'set' | 'spans' | 'count'>): number {
  const counts = partsOf(set).map(({ count }) => count)
  let before = 1
  for (const [depth, { list, count }] of spans.entries()) {
    if (isWholeBelow(counts, spans, depth)) return before * list.length
    before *= count
  }
  return before
}
