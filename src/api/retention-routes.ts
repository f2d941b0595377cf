import { assetKeyOf } from './asset-routes.ts'
import { collectBody, purgeBody, type RetentionApi } from './retention-contract.ts'
import { BASE, type Route, route } from './routing/route.ts'

/** Routes about room on the disk, and those that remove stored values. What they remove is gone, so only an administrator may. */
export const retentionRoutes = (service: RetentionApi): Route[] => [
  route({ method: 'GET', path: `${BASE}/storage`, needs: 'viewer', handle: () => service.storage() }),
  route({
    method: 'POST',
    path: `${BASE}/retention/collect`,
    needs: 'admin',
    body: collectBody,
    handle: ({ body, by }) => service.collect(body, by.name),
  }),
  route({
    method: 'POST',
    path: `${BASE}/assets/:key/purge`,
    needs: 'admin',
    body: purgeBody,
    handle: ({ params, body, by }) => service.purge(assetKeyOf(params.key), body, by.name),
  }),
]
