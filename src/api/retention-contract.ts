import { z } from 'zod'
import { id } from '../model/envelope.ts'
import { moment, named, type Told, whole } from './answers/told.ts'
import { partitionExtent } from './asset-contract.ts'

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
const removedBytes = named(
  'RemovedValue',
  z.object({
    asset_key: z.string(),
    partition_key: z.string().describe('The first one, of a value that was made for several.'),
    materialization_id: z.string().nullable(),
    materialized_at: moment.nullable(),
    path: z.string().nullable().describe('Null for a small value, which is recorded in the ledger.'),
    bytes: whole,
  }),
)
export type RemovedBytes = Told<typeof removedBytes>

/** What a part of a collection has removed. */
export const collected = named(
  'Collected',
  z.object({
    values: z.array(removedBytes),
    retained_assets: whole.describe('How many assets declare what is kept of them. Of the others, everything is.'),
    next_cursor: z.string().nullable().describe('Null when this was the last part.'),
  }),
)
export type Collected = Told<typeof collected>

/** What a part of a purge has removed. */
export const purged = named(
  'Purged',
  z.object({
    asset_key: z.string(),
    partitions: partitionExtent,
    values: z.array(removedBytes),
    in_use: whole.describe('Values that unfinished work may still read. They stay until it is purged again.'),
    next_cursor: z.string().nullable().describe('Null when this was the last part.'),
  }),
)
export type Purged = Told<typeof purged>

/** Whether there is room for more. */
export const storageRoom = named(
  'StorageRoom',
  z.object({
    disk: z
      .object({
        free_bytes: z.number(),
        total_bytes: z.number(),
        state: z.enum(['enough', 'low', 'none']),
        message: z.string(),
        hint: z.string().nullable().describe('What to do; null while there is enough room.'),
      })
      .nullable()
      .describe('The disk of the state; null where nobody knows.'),
  }),
)
export type StorageRoom = Told<typeof storageRoom>

/** Commands that remove stored values, and how much room there is for others. */
export interface RetentionApi {
  storage(): Promise<StorageRoom>
  /** Removes what the rules of the assets do not keep. */
  collect(body: CollectBody, user: string): Promise<Collected>
  /** Removes all values of partitions but the current ones. */
  purge(assetKey: string, body: PurgeBody, user: string): Promise<Purged>
}
