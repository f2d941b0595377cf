import { Hono } from 'hono'
import { z } from 'zod'
import { type AssetsApi, keysBody, reportBody, wipeBody } from './asset-contract.ts'
import { problemResponse } from './problem.ts'
import { readBody } from './read-body.ts'
import { takes } from './request/parameters.ts'

const pageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(10_000).default(1_000),
  cursor: z.string().max(2_048).optional(),
})

/** May be repeated, so the handlers read all of it. */
const selectQuery = z.object({ select: z.string().optional() })

/** Routes for assets, reports about them from outside, and the keys of dynamic partitions. The caller was authenticated before. */
export function assetRoutes(service: AssetsApi, userOf: (request: Request) => string): Hono {
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  const assets = '/api/v1/orchestration/assets'
  const keys = '/api/v1/orchestration/partitions/sets/:set/keys'

  app.get(assets, takes(pageQuery.extend(selectQuery.shape)), async (c) =>
    c.json(await service.list({ ...c.var.query, select: c.req.queries('select') ?? [] })),
  )

  app.get(`${assets}/graph`, takes(selectQuery), async (c) => c.json(await service.graph(c.req.queries('select') ?? [])))

  app.get(`${assets}/:key`, async (c) => c.json(await service.get(keyOf(c.req.param('key')))))

  app.post(`${assets}/:key/materializations`, async (c) => {
    const body = await readBody(c.req.raw, reportBody)
    return c.json(await service.report(keyOf(c.req.param('key')), body, userOf(c.req.raw)), 202)
  })

  app.post(`${assets}/:key/wipe`, async (c) => {
    const body = await readBody(c.req.raw, wipeBody)
    return c.json(await service.wipe(keyOf(c.req.param('key')), body, userOf(c.req.raw)), body.dry_run ? 200 : 202)
  })

  app.get(keys, takes(pageQuery), async (c) => c.json(await service.keys(c.req.param('set'), c.var.query)))

  app.post(keys, async (c) => {
    const body = await readBody(c.req.raw, keysBody)
    return c.json(await service.changeKeys(c.req.param('set'), body, userOf(c.req.raw)), 202)
  })

  return app
}

/** A slash in front belongs to no key: it distinguishes an asset called `graph` from the graph. */
const keyOf = (written: string): string => written.replace(/^\//, '')
