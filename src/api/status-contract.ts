import { z } from 'zod'
import type { StoredOutput } from '../contract/stored-output.ts'
import type { Blamed } from '../domain/partitions/explain.ts'
import { causeNames, displayStatuses } from '../domain/partitions/status-names.ts'
import { moment, named, nextCursor, type Told, whole } from './answers/told.ts'
import { listQuery, selectQuery } from './request/list-query.ts'

/** Keys and selection expressions. */
export type Selections = string | readonly string[] | undefined

/** A status, or those whose last attempt failed, made before or not. */
const statusFilters = [...displayStatuses, 'LAST_ATTEMPT_FAILED'] as const
export type StatusFilter = (typeof statusFilters)[number]

export const partitionQuery = listQuery.extend({
  ...selectQuery.shape,
  partition: z.string().min(1).max(2_048).optional().describe('A key or a range, as a run takes them.'),
  status: z.enum(statusFilters).optional().describe('Only partitions of this status.'),
  order: z.enum(['newest', 'oldest']).default('newest'),
  values: z
    .stringbool({ truthy: ['true'], falsy: ['false'] })
    .optional()
    .describe('`true`: each partition comes with its stored value, if that is small, and with the checksum of its file.'),
})
export type PartitionQuery = Omit<z.infer<typeof partitionQuery>, 'select'> & { select?: Selections }

export const staleQuery = listQuery.extend({
  ...selectQuery.shape,
  cause: z.enum(causeNames).optional().describe('Only partitions that have this cause themselves, not by their upstream.'),
})
export type StaleQuery = Omit<z.infer<typeof staleQuery>, 'select'> & { select?: Selections }

export const whyQuery = z.object({
  partition: z.string().min(1).max(2_048).optional().describe('The key; absent for an asset that is made as a whole.'),
})

const storedOutput = z.object({
  path: z.string().nullable().describe('In the data store.'),
  value: z.string().nullable().describe('Canonical JSON.'),
  bytes: z.number().nullable().describe('The size of the file, or of the text in UTF-8.'),
  sha256: z.string().nullable().describe('Of the same bytes, in hexadecimal; null if the worker reported none.'),
}) satisfies z.ZodType<StoredOutput>

/** One partition; `partition_key` is empty for an asset that is made as a whole. */
const shownPartition = named(
  'PartitionStatus',
  z.object({
    asset_key: z.string(),
    partition_key: z.string().describe('Empty for an asset that is made as a whole.'),
    status: z.enum(displayStatuses),
    is_stale: z
      .boolean()
      .describe('True if it should be made again. `causes` are its own; without any, something that it is made from is stale.'),
    causes: z.array(z.enum(causeNames)),
    last_materialization_at: moment.nullable(),
    last_materialization_run_id: z.string().nullable(),
    last_materialization_path: z
      .string()
      .nullable()
      .describe('Where its value lies in the data folder; null if none is stored, or a small one that has no file.'),
    last_materialization_code_version: z.string().nullable(),
    last_materialization_data_version: z.string().nullable().describe('Reported, or a checksum; null if there is neither.'),
    last_attempt_at: moment.nullable(),
    last_attempt_outcome: z.string().nullable(),
    last_attempt_run_id: z.string().nullable(),
    wiped_at: moment.nullable(),
    stored: storedOutput
      .nullable()
      .exactOptional()
      .describe('If values were asked for: how its value is stored; null if it has none that counts.'),
  }),
)
export type PartitionStatus = Told<typeof shownPartition>

export const partitionPage = named('PartitionPage', z.object({ partitions: z.array(shownPartition), ...nextCursor }))
export type PartitionPage = Told<typeof partitionPage>

export const partitionSummary = named(
  'PartitionSummary',
  z.object({
    asset_key: z.string(),
    partitions: whole.describe('The number of partitions that exist now.'),
    first: z.string().nullable(),
    last: z.string().nullable(),
    statuses: z.record(z.enum(displayStatuses), whole),
    causes: z
      .record(z.enum(causeNames), whole)
      .describe('The number of partitions that have each cause themselves; one partition may have several.'),
    stale_by_upstream: whole.describe(
      'The number of partitions that are stale only because something that they are made from is.',
    ),
    last_attempt_failed: whole.describe('The number of partitions whose last attempt failed, made before or not.'),
  }),
)
export type PartitionSummary = Told<typeof partitionSummary>

export const partitionSummaries = named('PartitionSummaries', z.object({ assets: z.array(partitionSummary) }))

const blamed = z.object({
  asset_key: z.string(),
  partition_keys: z.array(z.string()),
  count: whole,
  failed: whole.describe('Of the missing ones, the number whose last attempt failed.'),
  absent: whole.describe('Of the missing ones, the number that do not exist.'),
}) satisfies z.ZodType<Blamed>

const whyCause = z.object({
  cause: z.enum(causeNames),
  asset_key: z.string(),
  partition_keys: z.array(z.string()),
  count: whole,
  upstream: blamed.nullable(),
  since: moment.nullable(),
  path: z.array(z.string()),
})
export type WhyCause = Told<typeof whyCause>

export const whyStale = named('WhyStale', shownPartition.extend({ because: z.array(whyCause) }))
export type Why = Told<typeof whyStale>

/** Questions about the status of partitions. */
export interface StatusApi {
  list(query: PartitionQuery): Promise<PartitionPage>
  stale(query: StaleQuery): Promise<PartitionPage>
  summaries(select: Selections): Promise<readonly PartitionSummary[]>
  why(assetKey: string, partition: string | undefined): Promise<Why>
}
