import { Hono } from 'hono'
import { problemResponse } from './problem.ts'
import { takes } from './request/parameters.ts'
import { listQuery, type StatusApi, staleQuery, whyQuery } from './status-contract.ts'

/** The status of partitions. The key of an asset is one part of the path, with its slashes percent-encoded. */
export function statusRoutes(service: StatusApi): Hono {
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  const base = '/api/v1/orchestration'

  app.get(`${base}/partitions`, takes(listQuery), async (c) =>
    c.json(await service.list({ ...c.var.query, select: c.req.queries('select') })),
  )

  app.get(`${base}/partitions/stale`, takes(staleQuery), async (c) =>
    c.json(await service.stale({ ...c.var.query, select: c.req.queries('select') })),
  )

  app.get(`${base}/partitions/summary`, takes(listQuery.pick({ select: true })), async (c) =>
    c.json({ assets: await service.summaries(c.req.queries('select')) }),
  )

  app.get(`${base}/assets/:asset_key/partitions`, takes(listQuery.omit({ select: true })), async (c) =>
    c.json(await service.list({ ...c.var.query, select: c.req.param('asset_key') })),
  )

  app.get(`${base}/assets/:asset_key/partitions/summary`, async (c) => {
    const [summary] = await service.summaries(c.req.param('asset_key'))
    return c.json(summary)
  })

  app.get(`${base}/assets/:asset_key/why`, takes(whyQuery), async (c) =>
    c.json(await service.why(c.req.param('asset_key'), c.var.query.partition)),
  )

  return app
}
