import { z } from 'zod'
import { backfillAssets, type KeptPartitions } from '../../domain/backfills/backfill-assets.table.ts'
import { backfillChunks, chunkOutcomes } from '../../domain/backfills/backfill-chunks.table.ts'
import { backfillStates, backfills, type LeftOutPartitions, type Stage } from '../../domain/backfills/backfills.table.ts'
import { partitionSelector } from '../../domain/backfills/partition-selector.ts'
import { id } from '../../model/envelope.ts'
import { rowSchema } from '../answers/row-schema.ts'
import { acceptance, moment, named, nextCursor, type Told, typedAs, whole } from '../answers/told.ts'
import { listQuery, whenQuery } from '../request/list-query.ts'

/** A request that is sent again under the same id changes nothing again. */
const request = { request_id: id.optional() }

const asked = {
  select: z.array(id).min(1).max(1_000).describe('Asset keys or selection expressions.'),
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

/** `PAUSED_WITH_FAILURES` is a backfill that is paused while chunks of it have failed. */
const shownState = z.enum([...backfillStates, 'PAUSED_WITH_FAILURES'])
export type ShownBackfillState = Told<typeof shownState>

export const backfillQuery = listQuery.extend({
  status: z.enum(backfillStates).optional().describe('Only backfills in this state.'),
  asset: id.optional().describe('Only backfills of this asset.'),
  ...whenQuery('created'),
})
export type BackfillQuery = z.infer<typeof backfillQuery>

/** PLANNED until its run starts, then RUNNING, then its outcome. */
const chunkStates = ['PLANNED', 'RUNNING', ...chunkOutcomes] as const

export const chunkQuery = listQuery.extend({
  status: z.enum(chunkStates).optional().describe('Only chunks in this state.'),
  ...whenQuery('planned'),
})
export type ChunkQuery = z.infer<typeof chunkQuery>

const leftOut = z.object({ asset_key: z.string(), partitions: whole, why: z.string() }) satisfies z.ZodType<LeftOutPartitions>

const wireBackfill = named(
  'Backfill',
  rowSchema(backfills, {
    partition_selector: partitionSelector,
    dynamic_keys: z.any(),
    change_requests: z.any(),
    cancel_requests: z.any(),
    stages: typedAs<readonly Stage[]>(
      z.array(
        z.object({ assets: z.array(z.string()), partitions: z.unknown().nullable(), chunk_size: whole, positions: whole }),
      ),
    ),
    active_chunks: z.array(
      z.object({ chunk_index: whole, run_id: z.string(), run_key: z.string().optional(), request_fingerprint: z.string() }),
    ),
    left_out: z.array(leftOut),
  })
    .omit({ change_requests: true, cancel_requests: true, dynamic_keys: true })
    .extend({
      state: shownState,
      waits_for: z
        .enum(['automation_paused', 'automation_off'])
        .nullable()
        .describe(
          'Why it plans no chunks although it is neither paused nor at its end: automation is paused, or off on this server.',
        ),
      partitions_per_minute: z
        .number()
        .nullable()
        .describe('Partitions a minute that have ended since it was created; null before the first.'),
      expected_end: moment
        .nullable()
        .describe('When it ends if it goes on like this; null if that is not known, or not to be expected.'),
    }),
)
export type WireBackfill = Told<typeof wireBackfill>

const kept = z.object({ positions: z.array(whole), keys: z.array(z.string()) }) satisfies z.ZodType<KeptPartitions>

const wireBackfillAsset = named(
  'BackfillAsset',
  rowSchema(backfillAssets, {
    positions: z.any(),
    failed: kept,
    skipped: kept,
    overlapped: kept,
    cancelled: kept,
  }).omit({ positions: true, links: true }),
)
export type WireBackfillAsset = Told<typeof wireBackfillAsset>

const wireChunk = named(
  'Chunk',
  rowSchema(backfillChunks, { positions: z.array(whole) }).extend({
    state: z.enum(chunkStates).describe('PLANNED until its run starts, then RUNNING, then its outcome.'),
    first_key: z.string().nullable(),
    last_key: z.string().nullable(),
  }),
)
export type WireChunk = Told<typeof wireChunk>

export const backfillDetail = named('BackfillDetail', z.object({ backfill: wireBackfill, assets: z.array(wireBackfillAsset) }))
export type BackfillDetail = Told<typeof backfillDetail>

export const backfillPage = named('BackfillPage', z.object({ backfills: z.array(wireBackfill), ...nextCursor }))
export type BackfillPage = Told<typeof backfillPage>

export const chunkPage = named('ChunkPage', z.object({ chunks: z.array(wireChunk), ...nextCursor }))
export type ChunkPage = Told<typeof chunkPage>

export const backfillPreview = named(
  'BackfillPreview',
  z.object({
    assets: z
      .array(z.object({ asset_key: z.string(), partitions: whole, first: z.string().nullable(), last: z.string().nullable() }))
      .describe('In graph order.'),
    total_partitions: whole,
    total_chunks: whole,
    stages: z
      .array(z.object({ assets: z.array(z.string()), chunk_size: whole, chunks: whole }))
      .describe('Assets that share their runs, with the size of their chunks.'),
    first_chunk: z
      .object({ partitions: whole, keys: z.array(z.string()) })
      .nullable()
      .describe('The first partitions that would run, and how many the first chunk has.'),
    left_out: z
      .array(leftOut)
      .describe('What of the selected assets is not taken, and why: 0 partitions if an asset has none that are meant.'),
    missing_inputs: z
      .array(z.object({ asset_key: z.string(), upstream: z.string(), partitions: whole, first: z.array(z.string()) }))
      .describe(
        'What it reads that neither exists nor is made by it: with any of these it is not created. The first keys, and how many there are.',
      ),
    estimate_ms: z
      .number()
      .nullable()
      .describe('How long it would take by what its tasks usually take; null if that is not known.'),
    nothing_to_do: z.string().nullable().describe('Says so if there is nothing to do.'),
  }),
)
export type BackfillPreview = Told<typeof backfillPreview>

/** What became of a request that changes a backfill. */
export const acceptedBackfill = named(
  'AcceptedBackfill',
  z.object({ backfill_id: z.string(), ...acceptance, state: shownState, state_version: whole }),
)
export type AcceptedBackfill = Told<typeof acceptedBackfill>

export const createdBackfill = named(
  'CreatedBackfill',
  z.object({
    backfill_id: z.string().nullable().describe('Null when there is nothing to do.'),
    ...acceptance,
    created: z.boolean().describe('False when the same request had been made before, or there is nothing to do.'),
    total_partitions: whole,
    total_chunks: whole,
    parent_backfill_id: z.string().nullable(),
    left_out: z.array(leftOut).describe('What of the selected assets it does not cover, and why, as its preview has it.'),
  }),
)
export type CreatedBackfill = Told<typeof createdBackfill>

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
