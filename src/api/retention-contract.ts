import { z } from 'zod'
import { id } from '../model/envelope.ts'
import type { PartitionExtent } from './asset-contract.ts'

export const collectBody = z.object({
  /** Only says what would be removed. */
  dry_run: z.boolean().optional(),
  /** From the answer before: goes on behind it. */
  cursor: z.string().max(2_048).optional(),
})
export type CollectBody = z.infer<typeof collectBody>

export const purgeBody = z.object({
  /** Keys, ranges or `*`; absent for an asset that is made as a whole. */
  partitions: z.array(id).min(1).max(10_000).optional(),
  reason: z.string().max(4_096).optional(),
  /** Only says what would be removed. */
  dry_run: z.boolean().optional(),
  /** From the answer before: goes on behind it. */
  cursor: z.string().max(2_048).optional(),
})
export type PurgeBody = z.infer<typeof purgeBody>

/** A stored value whose bytes were removed, or would be. */
export interface RemovedBytes {
  readonly asset_key: string
  /** The first one, of a value that was made for several. */
  readonly partition_key: string
  readonly materialization_id: string | null
  readonly materialized_at: string | null
  /** Null for a small value, which is recorded in the ledger. */
  readonly path: string | null
  readonly bytes: number
}

/** What a part of a collection has removed. */
export interface Collected {
  readonly values: readonly RemovedBytes[]
  /** How many assets declare what is kept of them. Of the others, everything is. */
  readonly retained_assets: number
  /** Null when this was the last part. */
  readonly next_cursor: string | null
}

/** What a part of a purge has removed. */
export interface Purged {
  readonly asset_key: string
  readonly partitions: PartitionExtent
  readonly values: readonly RemovedBytes[]
  /** Values that unfinished work may still read. They stay until it is purged again. */
  readonly in_use: number
  readonly next_cursor: string | null
}

/** Whether there is room for more. */
export interface StorageRoom {
  /** The disk of the state; null where nobody knows. `hint` says what to do, and is null while there is enough room. */
  readonly disk: {
    readonly free_bytes: number
    readonly total_bytes: number
    readonly state: 'enough' | 'low' | 'none'
    readonly message: string
    readonly hint: string | null
  } | null
}

/** Commands that remove stored values, and how much room there is for others. */
export interface RetentionApi {
  storage(): Promise<StorageRoom>
  /** Removes what the rules of the assets do not keep. */
  collect(body: CollectBody, user: string): Promise<Collected>
  /** Removes all values of partitions but the current ones. */
  purge(assetKey: string, body: PurgeBody, user: string): Promise<Purged>
}
