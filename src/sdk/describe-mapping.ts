import { namesOf } from '../partitions/definition.ts'
import type { PartitionMapping } from '../partitions/mapping.ts'
import type { AnyAsset, MappingData } from './asset.ts'
import { optionsOf } from './definition.ts'
import type { AnyPartitions } from './partitions.ts'

/** A mapping as it is recorded. All along one dimension means the same partition along the others. */
export function describeMapping(of: AnyAsset, mapping: MappingData, partitions: AnyPartitions | undefined): PartitionMapping {
  if (mapping.type !== 'all' || mapping.dimension === undefined || partitions === undefined)
    return mapping.type === 'all' ? { type: 'all' } : mapping
  const { partitions: above } = optionsOf<{ partitions?: AnyPartitions }>(of)
  const others = above === undefined ? [] : namesOf(above.data).filter((name) => name !== mapping.dimension)
  const [only] = others
  if (partitions.data.type !== 'multi' && only !== undefined && others.length === 1)
    return { type: 'dimension', dimension: only, mapping: { type: 'identity' } }
  const own = namesOf(partitions.data)
  const same = others.filter((name) => own.includes(name))
  return {
    type: 'multi',
    dimensions: Object.fromEntries(same.map((name) => [name, { dimension: name, mapping: { type: 'identity' } }])),
  }
}
