import type { AssetDefinition } from '../../contract/project-manifest.ts'
import type { PartitionSet } from '../../partitions/partition-set.ts'
import type { FreshnessRule } from './freshness.ts'
import type { StaleLink } from './stale-links.ts'
import type { StatusColumns } from './status-columns.ts'

/** A dependency, and the asset that it leads to. */
export interface UpstreamLink extends StaleLink {
  readonly above: StaleAsset
}

/** An asset as staleness sees it. */
export interface StaleAsset {
  readonly key: string
  /** Greater than that of everything it is made from. */
  readonly order: number
  readonly definition: AssetDefinition
  readonly columns: StatusColumns
  /** Its partitions at this moment; columns may follow more later. */
  readonly set: PartitionSet
  readonly links: readonly UpstreamLink[]
  readonly freshness: FreshnessRule | undefined
  /** True for a source: its data may exist although it was never reported. */
  readonly isSource: boolean
  /** True if every materialization counts as other data, whatever its version. */
  readonly isAlwaysNew: boolean
  /** The number of the code it has now; -1 when it has no version. */
  readonly code: number
  /** 0 not known yet, 1 fresh, 2 stale: by itself or because of what it is made from. */
  known: Uint8Array
}
