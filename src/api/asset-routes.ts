import { z } from 'zod'
import { type AssetsApi, keysBody, reportBody, wipeBody } from './asset-contract.ts'
import { answer, BASE, type Route, route } from './routing/route.ts'

const pageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(10_000).default(1_000),
  cursor: z.string().max(2_048).optional(),
})

/** May be repeated, so the handlers read all of it. */
const selectQuery = z.object({ select: z.string().optional() })

const assets = `${BASE}/assets` as const
const keys = `${BASE}/partitions/sets/:set/keys` as const

/** Routes for assets, reports about them from outside, and the keys of dynamic partitions. */
export const assetRoutes = (service: AssetsApi): Route[] => [
  route({
    method: 'GET',
    path: assets,
    needs: 'viewer',
    query: pageQuery.extend(selectQuery.shape),
    handle: ({ query, repeated }) => service.list({ ...query, select: repeated('select') ?? [] }),
  }),
  route({
    method: 'GET',
    path: `${assets}/graph`,
    needs: 'viewer',
    query: selectQuery,
    handle: ({ repeated }) => service.graph(repeated('select') ?? []),
  }),
  route({
    method: 'GET',
    path: `${assets}/:key`,
    needs: 'viewer',
    handle: ({ params }) => service.get(assetKeyOf(params.key)),
  }),
  route({
    method: 'POST',
    path: `${assets}/:key/materializations`,
    needs: 'operator',
    body: reportBody,
    statuses: [202],
    handle: ({ params, body, by }) => service.report(assetKeyOf(params.key), body, by.name),
  }),
  route({
    method: 'POST',
    path: `${assets}/:key/wipe`,
    needs: 'operator',
    body: wipeBody,
    statuses: [202, 200],
    handle: async ({ params, body, by }) => {
      const wiped = await service.wipe(assetKeyOf(params.key), body, by.name)
      return answer(wiped, body.dry_run ? 200 : 202)
    },
  }),
  route({
    method: 'GET',
    path: keys,
    needs: 'viewer',
    query: pageQuery,
    handle: ({ params, query }) => service.keys(params.set, query),
  }),
  route({
    method: 'POST',
    path: keys,
    needs: 'operator',
    body: keysBody,
    statuses: [202],
    handle: ({ params, body, by }) => service.changeKeys(params.set, body, by.name),
  }),
]

/** A slash in front belongs to no key: it distinguishes an asset called `graph` from the graph. */
export const assetKeyOf = (written: string): string => written.replace(/^\//, '')
