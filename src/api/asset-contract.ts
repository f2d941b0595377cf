import { z } from 'zod'
import { dynamicKey } from '../contract/partition-keys.ts'
import type { AssetDefinition } from '../contract/project-manifest.ts'
import type { ReportedCheck } from '../contract/reported-check.ts'
import type { partitionStatus } from '../domain/partitions/partition-status.table.ts'
import { id, timestamp } from '../model/envelope.ts'
import type { WireRow } from './wire-row.ts'

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
export interface PartitionExtent {
  readonly count: number
  /** Null when there is none. */
  readonly first: string | null
  readonly last: string | null
}

export interface AssetSummary {
  readonly asset_key: string
  readonly kind: AssetDefinition['kind']
  readonly group: string
  readonly description: string | null
  /** Null for an asset that is made as a whole. */
  readonly partitions: (PartitionExtent & { readonly words: string }) | null
  readonly upstream: number
  readonly downstream: number
}

export interface AssetPage {
  readonly assets: readonly AssetSummary[]
  /** The number of selected assets on all pages. */
  readonly total: number
  readonly next_cursor: string | null
}

/** The inputs and dependencies of an asset. */
export interface AssetLink {
  readonly asset_key: string
  /** The name of the input in code; null for a dependency whose value is not read. */
  readonly input: string | null
  readonly mapping: unknown
  /** Null when neither side has partitions. */
  readonly words: string | null
}

export type WireStatus = WireRow<typeof partitionStatus>

export interface LastChecks {
  readonly run_id: string
  readonly partition_key: string | null
  readonly at: string
  readonly checks: readonly ReportedCheck[]
}

/** A partition whose last attempt failed; its key is empty for an asset that is made as a whole. */
export interface FailedPartition {
  readonly partition_key: string
  readonly run_id: string | null
  readonly at: string | null
  /** When the first attempt after its last materialization failed, if that is on record. */
  readonly since: string | null
  readonly error_message: string | null
  /** Its checks that did not pass. */
  readonly checks: readonly ReportedCheck[]
}

export interface AssetDetail {
  readonly asset: AssetSummary
  readonly definition: AssetDefinition
  /** The stable id of the asset, when this definition was recorded, and the version of the graph that brought it. */
  readonly asset_id: string
  readonly defined_at: string
  readonly graph_version: string
  readonly upstream: readonly AssetLink[]
  readonly downstream: readonly string[]
  /** The status of an asset that is made as a whole, if there is any. */
  readonly status: WireStatus | null
  /** True if its last materialization was wiped. */
  readonly wiped: boolean
  /** The last run on record that made it or tried to. */
  readonly last_run: { readonly run_id: string; readonly at: string; readonly state: string } | null
  /** What its checks found when they ran last. */
  readonly last_checks: LastChecks | null
  /** What went wrong if the last attempt at an asset that is made as a whole failed. */
  readonly last_failure: FailedPartition | null
  /** The partitions whose last attempt failed: how many, and the newest few. Null for an asset without partitions. */
  readonly failed_partitions: { readonly count: number; readonly newest: readonly FailedPartition[] } | null
}

export interface GraphView {
  readonly graph_version: string
  readonly nodes: readonly AssetSummary[]
  /** The edges between selected assets. */
  readonly edges: readonly { readonly from: string; readonly to: string }[]
}

/** The facts on record about an asset. */
export interface AcceptedFacts {
  readonly asset_key: string
  readonly partitions: PartitionExtent
  readonly request_id: string
  /** Null when nothing was written: the request was a repetition or a dry run. */
  readonly accepted_event_id: string | null
  readonly created: boolean
}

export interface AcceptedKeys {
  readonly set_name: string
  readonly request_id: string
  readonly added: number
  readonly removed: number
  /** Keys for which nothing had to change. */
  readonly unchanged: number
  readonly accepted_event_id: string | null
  readonly created: boolean
}

export interface KeyPage {
  readonly set_name: string
  readonly keys: readonly { readonly partition_key: string; readonly changed_at: string; readonly changed_by: string }[]
  readonly total: number
  readonly next_cursor: string | null
}

export interface PageQuery {
  readonly limit: number
  readonly cursor?: string | undefined
}

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
