import { type DimensionDefinition, dimensionOf, isTime, type PartitionDefinition } from '../definition.ts'
import type { LinkedMapping, PartitionMapping, SimpleMapping } from './mapping.ts'

/** One dimension of the upstream definition follows one of the downstream definition. A single dimension has any name. */
export interface DimensionLink {
  readonly upstream: string
  readonly downstream: string
  readonly mapping: SimpleMapping
}

export const isLinked = (mapping: PartitionMapping): mapping is LinkedMapping =>
  mapping.type === 'dimension' || mapping.type === 'multi'

/** The side with several dimensions is linked by the one of this name, the other as a whole. */
export function linksOf(
  mapping: LinkedMapping,
  downstream: PartitionDefinition,
  upstream: PartitionDefinition,
): readonly DimensionLink[] {
  const links =
    mapping.type === 'multi'
      ? Object.entries(mapping.dimensions).map(([name, { dimension, mapping }]) => ({
          upstream: name,
          downstream: dimension,
          mapping,
        }))
      : [{ upstream: mapping.dimension, downstream: mapping.dimension, mapping: mapping.mapping }]
  return links.map((link) => ({
    ...link,
    mapping: link.mapping ?? unsaid(dimensionOf(downstream, link.downstream), dimensionOf(upstream, link.upstream)),
  }))
}

/** How a mapping follows a dimension. */
function unsaid(below: DimensionDefinition | undefined, above: DimensionDefinition | undefined): SimpleMapping {
  return isTime(below) && isTime(above) ? { type: 'time_window', start_offset: 0, end_offset: 0 } : { type: 'identity' }
}
