import { Hono } from 'hono'
import { problemResponse } from './problem.ts'
import { readQuery } from './read-query.ts'
import { listQuery, type StatusApi, staleQuery, whyQuery } from './status-contract.ts'

/** The status of partitions. The key of an asset is one part of the path, with its slashes percent-encoded. */
export function statusRoutes(service: StatusApi): Hono {
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  const base = '/api/v1/orchestration'

  app.get(`${base}/partitions`, async (c) => c.json(await service.list(readQuery(listQuery, c.req.query()))))

  app.get(`${base}/partitions/stale`, async (c) => c.json(await service.stale(readQuery(staleQuery, c.req.query()))))

  app.get(`${base}/partitions/summary`, async (c) => {
    const { select } = readQuery(listQuery.pick({ select: true }), c.req.query())
    return c.json({ assets: await service.summaries(select) })
  })

  app.get(`${base}/assets/:asset_key/partitions`, async (c) => {
    const query = readQuery(listQuery.omit({ select: true }), c.req.query())
    return c.json(await service.list({ ...query, select: c.req.param('asset_key') }))
  })

  app.get(`${base}/assets/:asset_key/partitions/summary`, async (c) => {
    const [summary] = await service.summaries(c.req.param('asset_key'))
    return c.json(summary)
  })

  app.get(`${base}/assets/:asset_key/why`, async (c) => {
    const { partition } = readQuery(whyQuery, c.req.query())
    return c.json(await service.why(c.req.param('asset_key'), partition))
  })

  return app
}
