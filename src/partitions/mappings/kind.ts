import type { KeyList } from '../key-list.ts'
import type { KeyRange } from '../key-range.ts'
import type { PartitionSet } from '../partition-set.ts'

export interface MappedSets {
  readonly downstream: PartitionSet
  readonly upstream: PartitionSet
}

export interface UpstreamRanges {
  /** Partitions that exist; the ranges do not overlap. */
  readonly ranges: readonly KeyRange[]
  /** Keys that are required and do not exist: too early, not closed yet, or never. */
  readonly missing: KeyList
}

/** A kind of mapping in both directions: `u` is in `upstream(d)` exactly when `d` is in `downstream(u)`. */
export interface Kind<Mapping> {
  upstream(mapping: Mapping, sets: MappedSets, downstreamPosition: number): UpstreamRanges
  downstream(mapping: Mapping, sets: MappedSets, upstreamPosition: number): readonly KeyRange[]
}
