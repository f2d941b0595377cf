import {
  dimensionNames,
  dimensionOf,
  isTime,
  type PartitionDefinition,
  type Partitioning,
  sameDefinition,
} from '../../partitions/definition.ts'
import type { PartitionMapping, SimpleMapping } from '../../partitions/mappings/mapping.ts'
import type { MappingData } from '../partitions/mapped.ts'

/** A mapping as it is recorded: the author's choice for one dimension, combined with the defaults of the others. */
export function describeMapping(said: MappingData, above: Partitioning, below: Partitioning): PartitionMapping {
  if (said.type === 'all') {
    const { dimension } = said
    return dimension === undefined || above === undefined || below === undefined
      ? { type: 'all' }
      : besides(dimension, {}, above, below)
  }
  if (said.type === 'time_window') {
    const { dimension, ...mapping } = said
    if (above === undefined || below === undefined || (above.type !== 'multi' && below.type !== 'multi')) return mapping
    return alongTime(dimension, mapping, above, below)
  }
  if (said.type === 'specific') return { type: 'specific', keys: [...said.keys] }
  if (said.type === 'static')
    return { type: 'static', keys: Object.fromEntries(Object.entries(said.keys).map(([up, downs]) => [up, [...downs]])) }
  return said
}

/** Windows are counted along one dimension, and the others are the same. */
function alongTime(
  said: string | undefined,
  mapping: SimpleMapping,
  above: PartitionDefinition,
  below: PartitionDefinition,
): PartitionMapping {
  const [own, dimension] = [timeOf(below, said), timeOf(above, said)]
  // There is not one dimension of time: the check of the mapping reports the correction.
  if (own === undefined || dimension === undefined) return mapping
  if (above.type !== 'multi') return { type: 'dimension', dimension: own, mapping }
  if (below.type !== 'multi') return { type: 'dimension', dimension, mapping }
  return besides(dimension, { [dimension]: { dimension: own, mapping } }, above, below)
}

/** The dimension of time of this name, or the only one. */
function timeOf(definition: PartitionDefinition, name: string | undefined): string | undefined {
  if (definition.type !== 'multi') return ''
  const time = dimensionNames(definition).filter((each) => isTime(definition.dimensions[each]))
  if (name !== undefined && time.includes(name)) return name
  return time.length === 1 ? time[0] : undefined
}

type Links = Extract<PartitionMapping, { type: 'multi' }>['dimensions']

/** The mapping of one dimension; the other dimensions are matched by name. */
function besides(dimension: string, links: Links, above: PartitionDefinition, below: PartitionDefinition): PartitionMapping {
  const others = dimensionNames(above).filter((name) => name !== dimension)
  const [only] = others
  if (below.type !== 'multi' && only !== undefined && others.length === 1)
    return { type: 'dimension', dimension: only, ...ifSame(dimensionOf(above, only), below) }
  const namesakes = dimensionNames(below).filter((name) => others.includes(name))
  const same = namesakes.map((name) => {
    return [name, { dimension: name, ...ifSame(dimensionOf(above, name), dimensionOf(below, name)) }]
  })
  return { type: 'multi', dimensions: { ...Object.fromEntries(same), ...links } }
}

/** By default overlapping windows belong together; between equal definitions that is the identity. */
const ifSame = (above: Partitioning, below: Partitioning): { mapping?: SimpleMapping } =>
  above !== undefined && below !== undefined && sameDefinition(above, below) ? { mapping: { type: 'identity' } } : {}
