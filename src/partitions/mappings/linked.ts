import { assert } from '../../lib/assert.ts'
import { itemAt } from '../../lib/collections/item-at.ts'
import { concat, type KeyList, noKeys, product } from '../key-list.ts'
import { allOf, type KeyRange, keyRange, partsOf, positionsIn } from '../key-range.ts'
import type { PartitionSet } from '../partition-set.ts'
import { intersection, type Spans, union } from '../spans.ts'
import { linksOf } from './dimensions.ts'
import type { MappedSets, UpstreamRanges } from './kind.ts'
import type { LinkedMapping, SimpleMapping } from './mapping.ts'

type SimpleUpstream = (mapping: SimpleMapping, sets: MappedSets, position: number) => UpstreamRanges
type SimpleDownstream = (mapping: SimpleMapping, sets: MappedSets, position: number) => readonly KeyRange[]

export function linkedUpstream(
  mapping: LinkedMapping,
  { downstream, upstream }: MappedSets,
  position: number,
  simple: SimpleUpstream,
): UpstreamRanges {
  const links = placesOf(mapping, downstream, upstream)
  const positions = positionsIn(downstream, position)
  const found = partsOf(upstream).map((part, i) => {
    const link = links.find((it) => it.upstream === i)
    if (link === undefined) return { part, spans: spansOf([allOf(part)]), missing: noKeys }
    const sets = { downstream: itemAt(partsOf(downstream), link.downstream), upstream: part }
    const { ranges, missing } = simple(link.mapping, sets, itemAt(positions, link.downstream))
    return { part, spans: spansOf(ranges), missing }
  })
  return {
    ranges: [
      keyRange(
        upstream,
        found.map(({ spans }) => spans),
      ),
    ],
    missing: missingOf(upstream, found),
  }
}

export function linkedDownstream(
  mapping: LinkedMapping,
  { downstream, upstream }: MappedSets,
  position: number,
  simple: SimpleDownstream,
): readonly KeyRange[] {
  const links = placesOf(mapping, downstream, upstream)
  const positions = positionsIn(upstream, position)
  const spans = partsOf(downstream).map((part, i) =>
    links
      .filter((link) => link.downstream === i)
      .map((link) => {
        const sets = { downstream: part, upstream: itemAt(partsOf(upstream), link.upstream) }
        return spansOf(simple(link.mapping, sets, itemAt(positions, link.upstream)))
      })
      .reduce(intersection, spansOf([allOf(part)])),
  )
  return [keyRange(downstream, spans)]
}

/** The links, by the places of the dimensions in their sets. */
function placesOf(mapping: LinkedMapping, downstream: PartitionSet, upstream: PartitionSet) {
  const [below, above] = [downstream.definition, upstream.definition]
  assert(below !== undefined && above !== undefined, 'a mapping by dimension is between two partitioned assets')
  return linksOf(mapping, below, above).map((link) => ({
    upstream: placeOf(upstream, link.upstream),
    downstream: placeOf(downstream, link.downstream),
    mapping: link.mapping,
  }))
}

/** A set without named dimensions has one place. */
function placeOf(set: PartitionSet, name: string): number {
  return set.dimensions.length === 0 ? 0 : set.dimensions.findIndex((dimension) => dimension.name === name)
}

/** The positions found in one dimension are one set. */
const spansOf = (ranges: readonly KeyRange[]): Spans => union(ranges.map((range) => itemAt(range.spans, 0)))

interface Found {
  readonly part: PartitionSet
  readonly spans: Spans
  readonly missing: KeyList
}

/**
 * A combination is missing when any of its values is. To count each once, it belongs to the first dimension in which it is
 * missing: the dimensions before that have values that exist, those after have any.
 */
function missingOf(upstream: PartitionSet, found: readonly Found[]): KeyList {
  if (upstream.dimensions.length === 0) return itemAt(found, 0).missing
  const dimensions = upstream.dimensions.map(({ name }, i) => {
    const { part, spans, missing } = itemAt(found, i)
    return { name, missing, existing: keyRange(part, [spans]) }
  })
  return concat(
    dimensions.map(({ missing }, first) =>
      product(
        dimensions.map(({ name, existing, missing: alsoMissing }, i) => {
          if (i < first) return { name, keys: existing }
          return { name, keys: i === first ? missing : concat([existing, alsoMissing]) }
        }),
      ),
    ),
  )
}
