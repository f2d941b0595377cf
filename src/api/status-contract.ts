import { z } from 'zod'
import type { StoredOutput } from '../contract/stored-output.ts'
import type { Blamed } from '../domain/partitions/explain.ts'
import { type Cause, causeNames, type DisplayStatus, displayStatuses } from '../domain/partitions/status-names.ts'

/** Keys and selection expressions. */
export type Selections = string | readonly string[] | undefined

const selection = z.string().min(1).max(4_096).optional()
const limit = z.coerce.number().int().min(1).max(1_000).default(50)
/** The `next_cursor` of the page before. */
const cursor = z.string().max(2_048).optional()

/** A status, or those whose last attempt failed, made before or not. */
const statusFilters = [...displayStatuses, 'LAST_ATTEMPT_FAILED'] as const
export type StatusFilter = (typeof statusFilters)[number]

export const listQuery = z.object({
  /** Assets: a key or a selection expression, or several of them; all assets when absent. */
  select: selection,
  /** A key or a range, as a run takes them. */
  partition: z.string().min(1).max(2_048).optional(),
  status: z.enum(statusFilters).optional(),
  order: z.enum(['newest', 'oldest']).default('newest'),
  /** `true`: each partition comes with its stored value, if that is small, and with the checksum of its file. */
  values: z.stringbool({ truthy: ['true'], falsy: ['false'] }).optional(),
  limit,
  cursor,
})
export type PartitionQuery = Omit<z.infer<typeof listQuery>, 'select'> & { select?: Selections }

export const staleQuery = z.object({
  select: selection,
  /** Only partitions that have this cause themselves, not by their upstream. */
  cause: z.enum(causeNames).optional(),
  limit,
  cursor,
})
export type StaleQuery = Omit<z.infer<typeof staleQuery>, 'select'> & { select?: Selections }

export const whyQuery = z.object({ partition: z.string().min(1).max(2_048).optional() })

/** One partition; `partition_key` is empty for an asset that is made as a whole. */
export interface PartitionStatus {
  readonly asset_key: string
  readonly partition_key: string
  readonly status: DisplayStatus
  /** True if it should be made again. `causes` are its own; without any, something that it is made from is stale. */
  readonly is_stale: boolean
  readonly causes: readonly Cause[]
  readonly last_materialization_at: string | null
  readonly last_materialization_run_id: string | null
  /** Where its value lies in the data folder; null if none is stored, or a small one that has no file. */
  readonly last_materialization_path: string | null
  readonly last_materialization_code_version: string | null
  /** Reported, or a checksum; null if there is neither. */
  readonly last_materialization_data_version: string | null
  readonly last_attempt_at: string | null
  readonly last_attempt_outcome: string | null
  readonly last_attempt_run_id: string | null
  readonly wiped_at: string | null
  /** If values were asked for: how its value is stored; null if it has none that counts. */
  readonly stored?: StoredOutput | null
}

export interface PartitionPage {
  readonly partitions: readonly PartitionStatus[]
  /** The cursor of the next page; null on the last page. */
  readonly next_cursor: string | null
}

export interface PartitionSummary {
  readonly asset_key: string
  /** The number of partitions that exist now. */
  readonly partitions: number
  readonly first: string | null
  readonly last: string | null
  readonly statuses: Readonly<Record<DisplayStatus, number>>
  /** The number of partitions that have each cause themselves; one partition may have several. */
  readonly causes: Readonly<Record<Cause, number>>
  /** The number of partitions that are stale only because something that they are made from is. */
  readonly stale_by_upstream: number
  /** The number of partitions whose last attempt failed, made before or not. */
  readonly last_attempt_failed: number
}

export interface WhyCause {
  readonly cause: Cause
  readonly asset_key: string
  readonly partition_keys: readonly string[]
  readonly count: number
  readonly upstream: Blamed | null
  readonly since: string | null
  readonly path: readonly string[]
}

export interface Why extends PartitionStatus {
  readonly because: readonly WhyCause[]
}

/** Questions about the status of partitions. */
export interface StatusApi {
  list(query: PartitionQuery): Promise<PartitionPage>
  stale(query: StaleQuery): Promise<PartitionPage>
  summaries(select: Selections): Promise<readonly PartitionSummary[]>
  why(assetKey: string, partition: string | undefined): Promise<Why>
}
