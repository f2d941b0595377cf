import type { PartitionDefinition } from '../definition.ts'
import { concat, type KeyList, noKeys, product } from '../key-list.ts'
import { allOf, type KeyRange, keyRange, partsOf, positionsIn } from '../key-range.ts'
import type { PartitionSet } from '../partition-set.ts'
import { intersection, type Spans, union } from '../spans.ts'
import { linksOf } from './dimensions.ts'
import type { MappedSets, Upstream } from './kind.ts'
import type { LinkedMapping, SimpleMapping } from './mapping.ts'

type SimpleUpstream = (mapping: SimpleMapping, sets: MappedSets, position: number) => Upstream
type SimpleDownstream = (mapping: SimpleMapping, sets: MappedSets, position: number) => readonly KeyRange[]

export function linkedUpstream(
  mapping: LinkedMapping,
  { downstream, upstream }: MappedSets,
  position: number,
  simple: SimpleUpstream,
): Upstream {
  const links = placesOf(mapping, downstream, upstream)
  const positions = positionsIn(downstream, position)
  const found = partsOf(upstream).map((part, i) => {
    const link = links.find((it) => it.upstream === i)
    if (link === undefined) return { part, spans: spansOf([allOf(part)]), missing: noKeys }
    const sets = { downstream: partsOf(downstream)[link.downstream] as PartitionSet, upstream: part }
    const { ranges, missing } = simple(link.mapping, sets, positions[link.downstream] as number)
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
        const sets = { downstream: part, upstream: partsOf(upstream)[link.upstream] as PartitionSet }
        return spansOf(simple(link.mapping, sets, positions[link.upstream] as number))
      })
      .reduce(intersection, spansOf([allOf(part)])),
  )
  return [keyRange(downstream, spans)]
}

/** The links, by the places of the dimensions in their sets. */
function placesOf(mapping: LinkedMapping, downstream: PartitionSet, upstream: PartitionSet) {
  const links = linksOf(mapping, downstream.definition as PartitionDefinition, upstream.definition as PartitionDefinition)
  return links.map((link) => ({
    upstream: placeOf(upstream, link.upstream),
    downstream: placeOf(downstream, link.downstream),
    mapping: link.mapping,
  }))
}

/** A set without named dimensions has one place. */
function placeOf(set: PartitionSet, name: string): number {
  return set.dimensions.length === 0 ? 0 : set.dimensions.findIndex((dimension) => dimension.name === name)
}

/** What was found in one dimension is one set of positions. */
const spansOf = (ranges: readonly KeyRange[]): Spans => union(ranges.map((range) => range.spans[0] as Spans))

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
  const names = upstream.dimensions.map(({ name }) => name)
  if (names.length === 0) return (found[0] as Found).missing
  const existing = found.map(({ part, spans }) => keyRange(part, [spans]))
  return concat(
    found.map(({ missing }, first) =>
      product(
        names,
        found.map((other, i) => {
          const there = existing[i] as KeyRange
          if (i < first) return there
          return i === first ? missing : concat([there, other.missing])
        }),
      ),
    ),
  )
}
