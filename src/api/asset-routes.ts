import {
  type AssetsApi,
  acceptedFacts,
  acceptedKeys,
  assetDetail,
  assetPage,
  graphView,
  keyPage,
  keysBody,
  reportBody,
  wipeBody,
} from './asset-contract.ts'
import { listQuery, selectQuery } from './request/list-query.ts'
import { answer } from './routing/answer.ts'
import { BASE, type Route, route } from './routing/route.ts'

const assets = `${BASE}/assets` as const
const keys = `${BASE}/partitions/sets/:set/keys` as const

/** Routes for assets, reports about them from outside, and the keys of dynamic partitions. */
export const assetRoutes = (service: AssetsApi): Route[] => [
  route({
    method: 'GET',
    path: assets,
    operation: 'listAssets',
    summary: 'Lists assets by key.',
    needs: 'viewer',
    query: listQuery.extend(selectQuery.shape),
    answer: assetPage,
    isTagged: true,
    problems: [404],
    handle: ({ query, repeated }) => service.list({ ...query, select: repeated('select') ?? [] }),
  }),
  route({
    method: 'GET',
    path: `${assets}/graph`,
    operation: 'getAssetGraph',
    summary: 'Shows the graph of assets: nodes, and the edges between them.',
    needs: 'viewer',
    query: selectQuery,
    answer: graphView,
    isTagged: true,
    problems: [404],
    handle: ({ repeated }) => service.graph(repeated('select') ?? []),
  }),
  route({
    method: 'GET',
    path: `${assets}/:key`,
    operation: 'getAsset',
    summary: 'Shows everything known about an asset: its definition, its neighbours, its status and its last run.',
    needs: 'viewer',
    answer: assetDetail,
    isTagged: true,
    problems: [404],
    handle: ({ params }) => service.get(assetKeyOf(params.key)),
  }),
  route({
    method: 'POST',
    path: `${assets}/:key/materializations`,
    operation: 'reportMaterialization',
    example: { partitions: ['2025-01-15'], data_version: 'etag-5', report_id: 'export-7', metadata: { rows: 31_000 } },
    summary: 'Reports that something outside Servo materialized an asset.',
    needs: 'operator',
    body: reportBody,
    answer: acceptedFacts,
    problems: [404, 409],
    statuses: [202],
    handle: ({ params, body, by }) => service.report(assetKeyOf(params.key), body, by.name),
  }),
  route({
    method: 'POST',
    path: `${assets}/:key/wipe`,
    operation: 'wipeAsset',
    example: { partitions: ['2025-01-15'], reason: 'wrong prices', dry_run: true },
    summary: 'Makes materializations of an asset count no longer.',
    needs: 'operator',
    body: wipeBody,
    answer: acceptedFacts,
    problems: [404, 409],
    statuses: [202, 200],
    handle: async ({ params, body, by }) => {
      const wiped = await service.wipe(assetKeyOf(params.key), body, by.name)
      return answer(wiped, body.dry_run ? 200 : 202)
    },
  }),
  route({
    method: 'GET',
    path: keys,
    operation: 'listPartitionKeys',
    summary: 'Lists the keys of a dynamic set, sorted.',
    needs: 'viewer',
    query: listQuery,
    answer: keyPage,
    problems: [404],
    handle: ({ params, query }) => service.keys(params.set, query),
  }),
  route({
    method: 'POST',
    path: keys,
    operation: 'changePartitionKeys',
    example: { add: ['acme'], remove: ['hooli'], request_id: 'signup-17' },
    summary: 'Adds keys to a dynamic set, and removes keys from it.',
    needs: 'operator',
    body: keysBody,
    answer: acceptedKeys,
    problems: [404, 409],
    statuses: [202],
    handle: ({ params, body, by }) => service.changeKeys(params.set, body, by.name),
  }),
]

/** A slash in front belongs to no key: it distinguishes an asset called `graph` from the graph. */
export const assetKeyOf = (written: string): string => written.replace(/^\//, '')
