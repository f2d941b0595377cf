import { listOf } from '../key-list.ts'
import { someOf } from '../key-range.ts'
import type { PartitionSet } from '../partition-set.ts'
import type { UpstreamRanges } from './kind.ts'

/** Upstream partitions that were named one by one: existing and missing ones. */
export function rangesOfKeys(upstream: PartitionSet, keys: readonly string[]): UpstreamRanges {
  const positions: number[] = []
  const missing: string[] = []
  for (const key of new Set(keys)) {
    const position = upstream.positionOf(key)
    if (position === undefined) missing.push(key)
    else positions.push(position)
  }
  return { ranges: someOf(upstream, positions), missing: listOf(missing) }
}
