import { assetKeyOf } from './asset-routes.ts'
import { collectBody, collected, purgeBody, purged, type RetentionApi, storageRoom } from './retention-contract.ts'
import { BASE, type Route, route } from './routing/route.ts'

/** Routes about room on the disk, and those that remove stored values. What they remove is gone, so only an administrator may. */
export const retentionRoutes = (service: RetentionApi): Route[] => [
  route({
    method: 'GET',
    path: `${BASE}/storage`,
    operation: 'getStorage',
    summary: 'Says how much room there is on the disk of the state.',
    needs: 'viewer',
    answer: storageRoom,
    handle: () => service.storage(),
  }),
  route({
    method: 'POST',
    path: `${BASE}/retention/collect`,
    operation: 'collectValues',
    summary: 'Removes values that the rules of the assets do not keep.',
    needs: 'admin',
    answer: collected,
    problems: [409],
    body: collectBody,
    handle: ({ body, by }) => service.collect(body, by.name),
  }),
  route({
    method: 'POST',
    path: `${BASE}/assets/:key/purge`,
    operation: 'purgeAsset',
    summary: 'Removes the bytes of values of an asset that do not count.',
    needs: 'admin',
    answer: purged,
    problems: [404, 409],
    body: purgeBody,
    handle: ({ params, body, by }) => service.purge(assetKeyOf(params.key), body, by.name),
  }),
]
