import { BASE, type Route, route } from './routing/route.ts'
import { listQuery, type StatusApi, staleQuery, whyQuery } from './status-contract.ts'

const partitions = `${BASE}/partitions` as const
const asset = `${BASE}/assets/:asset_key` as const

/** The status of partitions. The key of an asset is one part of the path, with its slashes percent-encoded. */
export const statusRoutes = (service: StatusApi): Route[] => [
  route({
    method: 'GET',
    path: partitions,
    needs: 'viewer',
    query: listQuery,
    handle: ({ query, repeated }) => service.list({ ...query, select: repeated('select') }),
  }),
  route({
    method: 'GET',
    path: `${partitions}/stale`,
    needs: 'viewer',
    query: staleQuery,
    handle: ({ query, repeated }) => service.stale({ ...query, select: repeated('select') }),
  }),
  route({
    method: 'GET',
    path: `${partitions}/summary`,
    needs: 'viewer',
    query: listQuery.pick({ select: true }),
    handle: async ({ repeated }) => ({ assets: await service.summaries(repeated('select')) }),
  }),
  route({
    method: 'GET',
    path: `${asset}/partitions`,
    needs: 'viewer',
    query: listQuery.omit({ select: true }),
    handle: ({ params, query }) => service.list({ ...query, select: params.asset_key }),
  }),
  route({
    method: 'GET',
    path: `${asset}/partitions/summary`,
    needs: 'viewer',
    handle: async ({ params }) => (await service.summaries(params.asset_key))[0],
  }),
  route({
    method: 'GET',
    path: `${asset}/why`,
    needs: 'viewer',
    query: whyQuery,
    handle: ({ params, query }) => service.why(params.asset_key, query.partition),
  }),
]
