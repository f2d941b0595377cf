import { Hono } from 'hono'
import { problemResponse } from './problem.ts'
import { readBody } from './read-body.ts'
import { collectBody, purgeBody, type RetentionApi } from './retention-contract.ts'

/** Routes that remove stored values. The caller was authenticated before. */
export function retentionRoutes(service: RetentionApi, userOf: (request: Request) => string): Hono {
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  const base = '/api/v1/orchestration'

  app.get(`${base}/storage`, async (c) => c.json(await service.storage()))

  app.post(`${base}/retention/collect`, async (c) => {
    const body = await readBody(c.req.raw, collectBody)
    return c.json(await service.collect(body, userOf(c.req.raw)))
  })

  app.post(`${base}/assets/:key/purge`, async (c) => {
    const body = await readBody(c.req.raw, purgeBody)
    return c.json(await service.purge(c.req.param('key').replace(/^\//, ''), body, userOf(c.req.raw)))
  })

  return app
}
