import { namesOf, sameDefinition } from './definition.ts'
import type { PartitionMapping, SimpleMapping } from './mapping.ts'
import { isLinked, linksOf } from './mappings/dimensions.ts'
import type { MappedSets } from './mappings/kind.ts'
import type { PartitionSet } from './partition-set.ts'

/**
 * Whether code gets a collection of upstream partitions or a single one. Told by the mapping and not by how many there happen
 * to be: the first month of an asset, which has one day only, must not look different from the second.
 */
export function takesMany(mapping: PartitionMapping, { downstream, upstream }: MappedSets): boolean {
  if (upstream.definition === undefined) return false
  if (downstream.definition === undefined || !isLinked(mapping))
    return simpleTakesMany(mapping as SimpleMapping, downstream, upstream)
  const links = linksOf(mapping, downstream.definition, upstream.definition)
  const linked = new Set(links.map((link) => link.upstream))
  if (namesOf(upstream.definition).some((name) => !linked.has(name))) return true
  return links.some((link) => {
    const [below, above] = [partOf(downstream, link.downstream), partOf(upstream, link.upstream)]
    return simpleTakesMany(link.mapping, below, above)
  })
}

function simpleTakesMany(mapping: SimpleMapping, downstream: PartitionSet, upstream: PartitionSet): boolean {
  if (mapping.type === 'identity' || mapping.type === 'last') return false
  if (mapping.type === 'specific') return mapping.keys.length > 1
  if (mapping.type !== 'time_window') return true
  if (mapping.start_offset !== mapping.end_offset) return true
  const [below, above] = [downstream.definition, upstream.definition]
  return (
    !(below !== undefined && above !== undefined && sameDefinition(below, above)) && lengthOf(upstream) < lengthOf(downstream)
  )
}

/** How long windows are, as far as the first two tell. */
function lengthOf({ axis }: PartitionSet): number {
  return axis === undefined ? 0 : axis.at(1).startMs - axis.at(0).startMs
}

/** A set with one dimension is that dimension, by whatever name. */
function partOf(set: PartitionSet, name: string): PartitionSet {
  return set.dimensions.find((dimension) => dimension.name === name)?.set ?? set
}
