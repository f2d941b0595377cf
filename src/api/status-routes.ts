import { ServoError } from '../lib/error.ts'
import { selectQuery } from './request/list-query.ts'
import { BASE, type Route, route } from './routing/route.ts'
import {
  partitionPage,
  partitionQuery,
  partitionSummaries,
  partitionSummary,
  type StatusApi,
  staleQuery,
  whyQuery,
  whyStale,
} from './status-contract.ts'

const partitions = `${BASE}/partitions` as const
const asset = `${BASE}/assets/:asset_key` as const

/** The status of partitions. The key of an asset is one part of the path, with its slashes percent-encoded. */
export const statusRoutes = (service: StatusApi): Route[] => [
  route({
    method: 'GET',
    path: partitions,
    operation: 'listPartitions',
    summary: 'Lists partitions with their status.',
    needs: 'viewer',
    query: partitionQuery,
    answer: partitionPage,
    problems: [404],
    handle: ({ query, repeated }) => service.list({ ...query, select: repeated('select') }),
  }),
  route({
    method: 'GET',
    path: `${partitions}/stale`,
    operation: 'listStalePartitions',
    summary: 'Lists stale partitions, the oldest first.',
    needs: 'viewer',
    query: staleQuery,
    answer: partitionPage,
    problems: [404],
    handle: ({ query, repeated }) => service.stale({ ...query, select: repeated('select') }),
  }),
  route({
    method: 'GET',
    path: `${partitions}/summary`,
    operation: 'summarizePartitions',
    summary: 'Counts the partitions of each asset by status and by cause.',
    needs: 'viewer',
    query: selectQuery,
    answer: partitionSummaries,
    problems: [404],
    handle: async ({ repeated }) => ({ assets: await service.summaries(repeated('select')) }),
  }),
  route({
    method: 'GET',
    path: `${asset}/partitions`,
    operation: 'listAssetPartitions',
    summary: 'Lists the partitions of an asset with their status.',
    needs: 'viewer',
    query: partitionQuery.omit({ select: true }),
    answer: partitionPage,
    problems: [404],
    handle: ({ params, query }) => service.list({ ...query, select: params.asset_key }),
  }),
  route({
    method: 'GET',
    path: `${asset}/partitions/summary`,
    operation: 'summarizeAssetPartitions',
    summary: 'Counts the partitions of an asset by status and by cause.',
    needs: 'viewer',
    answer: partitionSummary,
    problems: [404],
    handle: async ({ params }) => {
      const [summary] = await service.summaries(params.asset_key)
      if (summary === undefined) throw noSuchAsset(params.asset_key)
      return summary
    },
  }),
  route({
    method: 'GET',
    path: `${asset}/why`,
    operation: 'explainStaleness',
    summary: 'Says why a partition is stale: every cause, where it is, and since when.',
    needs: 'viewer',
    query: whyQuery,
    answer: whyStale,
    problems: [404],
    handle: ({ params, query }) => service.why(params.asset_key, query.partition),
  }),
]

const noSuchAsset = (key: string): ServoError =>
  new ServoError('not_found', 'no_such_asset', `asset ${JSON.stringify(key.slice(0, 255))} not found`, {
    hint: 'servo assets lists the assets there are.',
  })
