import { z } from 'zod'
import type { backfillAssets } from '../../domain/backfills/backfill-assets.table.ts'
import { type backfillChunks, chunkOutcomes } from '../../domain/backfills/backfill-chunks.table.ts'
import { backfillStates, type backfills, type LeftOutPartitions } from '../../domain/backfills/backfills.table.ts'
import { partitionSelector } from '../../domain/backfills/partition-selector.ts'
import { id } from '../../model/envelope.ts'
import type { WireRow } from '../wire-row.ts'

/** A request that is sent again under the same id changes nothing again. */
const request = { request_id: id.optional() }

const asked = {
  /** Keys of assets, or selections. */
  assets: z.array(id).min(1).max(1_000),
  /** Which partitions. A retry has a route of its own. */
  partitions: partitionSelector
    .refine(({ type }) => type !== 'retry_failed', 'is what retry-failed makes')
    .refine(
      (selector) => selector.type !== 'filter' || Object.keys(selector.filters).length > 0,
      'must name a dimension; select all partitions by {"type":"all"}',
    ),
  /** Partitions of each asset in a run; otherwise what the assets declare, otherwise 10. */
  chunk_size: z.number().int().min(1).max(10_000).optional(),
  /** Leaves out partitions that exist already. */
  skip_existing: z.boolean().optional(),
  newest_first: z.boolean().optional(),
}

const how = {
  max_concurrent_runs: z.number().int().min(1).max(1_000).optional(),
  priority: z.number().int().min(-1_000).max(1_000).optional(),
  /** After so many failed chunks no more are planned. */
  stop_after_failures: z.number().int().min(1).max(1_000_000).optional(),
}

export const newBackfillBody = z.object({ ...asked, ...how, ...request }).strict()
export type NewBackfillBody = z.infer<typeof newBackfillBody>

export const backfillPreviewBody = z.object({ ...asked, ...how }).strict()
export type BackfillPreviewBody = z.infer<typeof backfillPreviewBody>

export const backfillSwitchBody = z.object({ reason: z.string().max(4_096).optional(), ...request }).strict()
export type BackfillSwitchBody = z.infer<typeof backfillSwitchBody>

/** `cancel_runs` cancels runs that have started, too. */
export const backfillCancelBody = backfillSwitchBody.extend({ cancel_runs: z.boolean().optional() }).strict()
export type BackfillCancelBody = z.infer<typeof backfillCancelBody>

export const backfillRetryBody = z.object({ ...how, ...request }).strict()
export type BackfillRetryBody = z.infer<typeof backfillRetryBody>

/** What a backfill goes on with; what is absent stays. `priority` is that of runs that are planned from now on. */
export const backfillChangesBody = z
  .object({ ...how, stop_after_failures: how.stop_after_failures.nullable(), ...request })
  .strict()
  .refine(({ request_id: _, ...changes }) => Object.keys(changes).length > 0, 'changes nothing')
export type BackfillChangesBody = z.infer<typeof backfillChangesBody>

const page = { limit: z.coerce.number().int().min(1).max(1_000).default(50), cursor: z.string().max(2_048).optional() }

export const backfillQuery = z.object({ ...page, state: z.enum(backfillStates).optional(), asset: id.optional() })
export type BackfillQuery = z.infer<typeof backfillQuery>

export const chunkQuery = z.object({ ...page, outcome: z.enum(chunkOutcomes).optional() })
export type ChunkQuery = z.infer<typeof chunkQuery>

/** `PAUSED_WITH_FAILURES` is a backfill that is paused while chunks of it have failed. */
export type ShownBackfillState = (typeof backfillStates)[number] | 'PAUSED_WITH_FAILURES'

export type WireBackfill = Omit<WireRow<typeof backfills>, 'state' | 'change_requests' | 'cancel_requests' | 'dynamic_keys'> & {
  readonly state: ShownBackfillState
  /** Why it plans no chunks although it is neither paused nor at its end: automation is paused, or off on this server. */
  readonly waits_for: 'automation_paused' | 'automation_off' | null
  /** Partitions a minute that have ended since it was created; null before the first. */
  readonly partitions_per_minute: number | null
  /** When it ends if it goes on like this; null if that is not known, or not to be expected. */
  readonly expected_end: string | null
}
export type WireBackfillAsset = Omit<WireRow<typeof backfillAssets>, 'positions' | 'links'>

export type WireChunk = WireRow<typeof backfillChunks> & {
  /** PLANNED until its run starts, then RUNNING, then its outcome. */
  readonly state: string
  readonly first_key: string | null
  readonly last_key: string | null
}

export interface BackfillDetail {
  readonly backfill: WireBackfill
  readonly assets: readonly WireBackfillAsset[]
}

export interface BackfillPage {
  readonly backfills: readonly WireBackfill[]
  readonly next_cursor: string | null
}

export interface ChunkPage {
  readonly chunks: readonly WireChunk[]
  readonly next_cursor: string | null
}

interface PreviewedAsset {
  readonly asset_key: string
  readonly partitions: number
  readonly first: string | null
  readonly last: string | null
}

export interface BackfillPreview {
  /** In graph order. */
  readonly assets: readonly PreviewedAsset[]
  readonly total_partitions: number
  readonly total_chunks: number
  /** Assets that share their runs, with the size of their chunks. */
  readonly stages: readonly { readonly assets: readonly string[]; readonly chunk_size: number; readonly chunks: number }[]
  /** The first partitions that would run, and how many the first chunk has. */
  readonly first_chunk: { readonly partitions: number; readonly keys: readonly string[] } | null
  /** What of the selected assets is not taken, and why: 0 partitions if an asset has none that are meant. */
  readonly left_out: readonly LeftOutPartitions[]
  /** What it reads that neither exists nor is made by it: with any of these it is not created. The first keys, and how many there are. */
  readonly missing_inputs: readonly {
    readonly asset_key: string
    readonly upstream: string
    readonly partitions: number
    readonly first: readonly string[]
  }[]
  /** How long it would take by what its tasks usually take; null if that is not known. */
  readonly estimate_ms: number | null
  /** Says so if there is nothing to do. */
  readonly nothing_to_do: string | null
}

/** What became of a request that changes a backfill. */
export interface AcceptedBackfill {
  readonly backfill_id: string
  readonly message: string
  /** Null when nothing was new. */
  readonly accepted_event_id: string | null
  readonly accepted_at: string
  /** The id of the request. */
  readonly correlation_id: string
  readonly state: ShownBackfillState
  readonly state_version: number
}

export interface CreatedBackfill extends Omit<AcceptedBackfill, 'backfill_id' | 'state' | 'state_version'> {
  /** Null when there is nothing to do. */
  readonly backfill_id: string | null
  /** False when the same request had been made before, or there is nothing to do. */
  readonly created: boolean
  readonly total_partitions: number
  readonly total_chunks: number
  readonly parent_backfill_id: string | null
  /** What of the selected assets it does not cover, and why, as its preview has it. */
  readonly left_out: readonly LeftOutPartitions[]
}

/**
 * Questions and commands about backfills. A change that names the `state_version` that it expects is refused if the backfill has
 * another.
 */
export interface BackfillsApi {
  preview(body: BackfillPreviewBody): Promise<BackfillPreview>
  create(body: NewBackfillBody, user: string): Promise<CreatedBackfill>
  /** The newest first. */
  list(query: BackfillQuery): Promise<BackfillPage>
  get(backfillId: string): Promise<BackfillDetail>
  /** In order. */
  chunks(backfillId: string, query: ChunkQuery): Promise<ChunkPage>
  pause(backfillId: string, body: BackfillSwitchBody, user: string, expected?: number): Promise<AcceptedBackfill>
  resume(backfillId: string, body: BackfillSwitchBody, user: string, expected?: number): Promise<AcceptedBackfill>
  update(backfillId: string, body: BackfillChangesBody, user: string, expected?: number): Promise<AcceptedBackfill>
  cancel(backfillId: string, body: BackfillCancelBody, user: string, expected?: number): Promise<AcceptedBackfill>
  retryFailed(backfillId: string, body: BackfillRetryBody, user: string): Promise<CreatedBackfill>
}
