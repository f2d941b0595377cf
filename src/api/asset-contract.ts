import { z } from 'zod'
import { reportedCheck } from '../contract/dispatch.ts'
import { dynamicKey } from '../contract/partition-keys.ts'
import { type AssetDefinition, assetDefinition } from '../contract/project-manifest.ts'
import { partitionStatus } from '../domain/partitions/partition-status.table.ts'
import { id, timestamp } from '../model/envelope.ts'
import { rowSchema } from './answers/row-schema.ts'
import { moment, named, nextCursor, type Told, whole } from './answers/told.ts'
import type { PageQuery } from './request/list-query.ts'

/** Short enough that the key of a partition can be appended. */
const requestId = id.max(200)
/** Keys, ranges (`2025-01-01..2025-01-31`), `*`, or the same by dimension. */
const partitions = z.array(id).min(1).max(10_000)

export const reportBody = z.object({
  /** A key or a range; absent for an asset that is made as a whole. */
  partition: id.optional(),
  partitions: partitions.optional(),
  /** Now, if absent. */
  materialized_at: timestamp.optional(),
  materialization_id: id.optional(),
  code_version: id.optional(),
  /** Equal data has equal versions: what was made from it stays fresh if it is reported again with the same one. */
  data_version: id.optional(),
  /** Names the request: the same id again is the same report. */
  report_id: requestId.optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
})
export type ReportBody = z.infer<typeof reportBody>

export const wipeBody = z.object({
  partitions: partitions.optional(),
  request_id: requestId.optional(),
  reason: z.string().max(4_096).optional(),
  /** Lists the partitions that would be wiped, and wipes nothing. */
  dry_run: z.boolean().optional(),
})
export type WipeBody = z.infer<typeof wipeBody>

/** A body has at most a mebibyte, which limits long keys sooner than this. */
const MAX_KEYS = 100_000
export const keysBody = z.object({
  /** The workspace checks the keys themselves: it may be asked without a server. */
  add: z.array(z.string()).max(MAX_KEYS).optional(),
  remove: z.array(dynamicKey).max(MAX_KEYS).optional(),
  request_id: requestId.optional(),
})
export type KeysBody = z.infer<typeof keysBody>

/** The partitions of an asset, or the ones that a request named. */
export const partitionExtent = named(
  'PartitionExtent',
  z.object({
    count: whole,
    first: z.string().nullable().describe('Null when there is none.'),
    last: z.string().nullable(),
  }),
)
export type PartitionExtent = Told<typeof partitionExtent>

const assetSummary = named(
  'AssetSummary',
  z.object({
    asset_key: z.string(),
    kind: assetDefinition.shape.kind,
    group: z.string(),
    description: z.string().nullable(),
    partitions: partitionExtent
      .extend({ words: z.string().describe('How it is partitioned, in words.') })
      .nullable()
      .describe('Null for an asset that is made as a whole.'),
    upstream: whole.describe('How many assets it is made from.'),
    downstream: whole.describe('How many assets are made from it.'),
  }),
)
export type AssetSummary = Told<typeof assetSummary>

export const assetPage = named(
  'AssetPage',
  z.object({
    assets: z.array(assetSummary),
    total: whole.describe('The number of selected assets on all pages.'),
    ...nextCursor,
  }),
)
export type AssetPage = Told<typeof assetPage>

/** The inputs and dependencies of an asset. */
const assetLink = z.object({
  asset_key: z.string(),
  input: z.string().nullable().describe('The name of the input in code; null for a dependency whose value is not read.'),
  mapping: z.unknown().describe('Which upstream partitions it needs.'),
  words: z.string().nullable().describe('The same in words; null when neither side has partitions.'),
})
export type AssetLink = Told<typeof assetLink>

const wireStatus = named('PartitionRow', rowSchema(partitionStatus, {}))
export type WireStatus = Told<typeof wireStatus>

const shownCheck = named('Check', reportedCheck.clone())

const lastChecks = z.object({
  run_id: z.string(),
  partition_key: z.string().nullable(),
  at: moment,
  checks: z.array(shownCheck),
})
export type LastChecks = Told<typeof lastChecks>

/** A partition whose last attempt failed; its key is empty for an asset that is made as a whole. */
const failedPartition = named(
  'FailedPartition',
  z.object({
    partition_key: z.string(),
    run_id: z.string().nullable(),
    at: moment.nullable(),
    since: moment.nullable().describe('When the first attempt after its last materialization failed, if that is on record.'),
    error_message: z.string().nullable(),
    checks: z.array(shownCheck).describe('Its checks that did not pass.'),
  }),
)
export type FailedPartition = Told<typeof failedPartition>

export const assetDetail = named(
  'AssetDetail',
  z.object({
    asset: assetSummary,
    definition: named('AssetDefinition', assetDefinition.clone()),
    asset_id: z.string().describe('The stable id of the asset.'),
    defined_at: moment.describe('When this definition was recorded.'),
    graph_version: z.string().describe('The version of the graph that brought it.'),
    upstream: z.array(assetLink),
    downstream: z.array(z.string()),
    status: wireStatus.nullable().describe('The status of an asset that is made as a whole, if there is any.'),
    wiped: z.boolean().describe('True if its last materialization was wiped.'),
    last_run: z
      .object({ run_id: z.string(), at: moment, state: z.string() })
      .nullable()
      .describe('The last run on record that made it or tried to.'),
    last_checks: lastChecks.nullable().describe('What its checks found when they ran last.'),
    last_failure: failedPartition
      .nullable()
      .describe('What went wrong if the last attempt at an asset that is made as a whole failed.'),
    failed_partitions: z
      .object({ count: whole, newest: z.array(failedPartition) })
      .nullable()
      .describe(
        'The partitions whose last attempt failed: how many, and the newest few. Null for an asset without partitions.',
      ),
  }),
)
export type AssetDetail = Omit<Told<typeof assetDetail>, 'definition'> & { readonly definition: AssetDefinition }

export const graphView = named(
  'AssetGraph',
  z.object({
    graph_version: z.string(),
    nodes: z.array(assetSummary).describe('Every asset after those that it is made from.'),
    edges: z.array(z.object({ from: z.string(), to: z.string() })).describe('The edges between selected assets.'),
  }),
)
export type GraphView = Told<typeof graphView>

/** The facts on record about an asset. */
export const acceptedFacts = named(
  'AcceptedFacts',
  z.object({
    asset_key: z.string(),
    partitions: partitionExtent,
    request_id: z.string(),
    accepted_event_id: z
      .string()
      .nullable()
      .describe('Null when nothing was written: the request was a repetition or a dry run.'),
    created: z.boolean(),
  }),
)
export type AcceptedFacts = Told<typeof acceptedFacts>

export const acceptedKeys = named(
  'AcceptedKeys',
  z.object({
    set_name: z.string(),
    request_id: z.string(),
    added: whole,
    removed: whole,
    unchanged: whole.describe('Keys for which nothing had to change.'),
    accepted_event_id: z.string().nullable(),
    created: z.boolean(),
  }),
)
export type AcceptedKeys = Told<typeof acceptedKeys>

export const keyPage = named(
  'KeyPage',
  z.object({
    set_name: z.string(),
    keys: z.array(z.object({ partition_key: z.string(), changed_at: moment, changed_by: z.string() })),
    total: whole,
    ...nextCursor,
  }),
)
export type KeyPage = Told<typeof keyPage>

/** Questions and commands about assets and their partitions. */
export interface AssetsApi {
  list(query: PageQuery & { select: readonly string[] }): Promise<AssetPage>
  get(assetKey: string): Promise<AssetDetail>
  graph(select: readonly string[]): Promise<GraphView>
  report(assetKey: string, body: ReportBody, user: string): Promise<AcceptedFacts>
  wipe(assetKey: string, body: WipeBody, user: string): Promise<AcceptedFacts>
  changeKeys(setName: string, body: KeysBody, user: string): Promise<AcceptedKeys>
  keys(setName: string, query: PageQuery): Promise<KeyPage>
}
