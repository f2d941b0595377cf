import { ServoError } from '../../lib/error.ts'
import type { PartitionDefinition } from '../../partitions/definition.ts'
import type { KeyList } from '../../partitions/key-list.ts'
import type { KeyRange } from '../../partitions/key-range.ts'
import type { UpstreamRanges } from '../../partitions/mappings/kind.ts'
import { downstreamOf, type PartitionMapping, upstreamAt, upstreamOf } from '../../partitions/mappings/mapping.ts'
import { type PartitionSet, partitionSet, type SetOptions } from '../../partitions/partition-set.ts'
import type { GraphMappings, Link } from './graph-mappings.ts'

export type PartitionsAsOf = Pick<SetOptions, 'nowMs' | 'dynamicKeys'>

/** The partitions of every asset of a graph at one moment, and how they depend on each other. */
export class GraphPartitions {
  readonly #mappings: GraphMappings
  readonly #options: SetOptions
  readonly #sets = new Map<PartitionDefinition | undefined, PartitionSet>()

  constructor(mappings: GraphMappings, moment: PartitionsAsOf) {
    this.#mappings = mappings
    this.#options = { ...moment, windows: mappings.windows }
  }

  of(assetKey: string): PartitionSet {
    const definition = this.#mappings.definition(assetKey)
    let set = this.#sets.get(definition)
    if (set === undefined) {
      set = partitionSet(definition, this.#options)
      this.#sets.set(definition, set)
    }
    return set
  }

  /** The keys of a dynamic set at this moment. */
  dynamicKeys(name: string): readonly string[] {
    return this.#options.dynamicKeys(name)
  }

  links(assetKey: string): readonly Link[] {
    return this.#mappings.links(assetKey)
  }

  mapping(assetKey: string, upstream: string, said: unknown): PartitionMapping {
    return this.#mappings.mapping(assetKey, upstream, said)
  }

  /** The upstream partitions that a partition is made from. The empty text is the key of an asset without partitions. */
  upstreamOf(assetKey: string, { upstream, mapping }: Link, key: string): UpstreamRanges {
    return upstreamOf(mapping, { downstream: this.of(assetKey), upstream: this.of(upstream) }, key)
  }

  /** The same by position. */
  upstreamAt(assetKey: string, { upstream, mapping }: Link, position: number): UpstreamRanges {
    return upstreamAt(mapping, { downstream: this.of(assetKey), upstream: this.of(upstream) }, position)
  }

  /** The same, but throws when a needed partition does not exist. The first window of an asset needs none before it. */
  neededBy(assetKey: string, link: Link, key: string): readonly KeyRange[] {
    const { ranges, missing } = this.upstreamOf(assetKey, link, key)
    if (missing.count > 0 && link.upstream !== assetKey) throw upstreamMissing(assetKey, link.upstream, key, missing)
    return ranges
  }

  /** Which partitions of an asset are made from one of its upstream. */
  downstreamOf(assetKey: string, { upstream, mapping }: Link, upstreamKey: string): readonly KeyRange[] {
    return downstreamOf(mapping, { downstream: this.of(assetKey), upstream: this.of(upstream) }, upstreamKey)
  }
}

/** Names asset and partition within a run. Keys of assets have no brackets, so no two tasks share a name. */
export const taskKey = (asset: string, partition: string | null): string =>
  partition === null || partition === '' ? asset : `${asset}[${partition}]`

function upstreamMissing(assetKey: string, upstream: string, key: string, missing: KeyList): ServoError {
  const more = missing.count > 1 ? ` and ${missing.count - 1} more` : ''
  const message = `${taskKey(assetKey, key)} needs ${taskKey(upstream, missing.at(0))}${more}, which does not exist`
  return new ServoError('invalid', 'upstream_missing', message, {
    hint: 'Request a later partition, or let the upstream partitions start earlier.',
  })
}
