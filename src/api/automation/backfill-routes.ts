import { Hono } from 'hono'
import { problemResponse } from '../problem.ts'
import { readBody } from '../read-body.ts'
import { takes } from '../request/parameters.ts'
import {
  type BackfillsApi,
  backfillCancelBody,
  backfillChangesBody,
  backfillPreviewBody,
  backfillQuery,
  backfillRetryBody,
  backfillSwitchBody,
  chunkQuery,
  newBackfillBody,
} from './backfill-contract.ts'
import { expectedVersion } from './expected-version.ts'

/** Routes for backfills. */
export function backfillRoutes(service: BackfillsApi, userOf: (request: Request) => string): Hono {
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  const backfills = '/api/v1/orchestration/backfills'

  app.get(backfills, takes(backfillQuery), async (c) => c.json(await service.list(c.var.query)))

  app.post(backfills, async (c) => {
    const body = await readBody(c.req.raw, newBackfillBody)
    return c.json(await service.create(body, userOf(c.req.raw)), 202)
  })

  app.post(`${backfills}/preview`, async (c) => c.json(await service.preview(await readBody(c.req.raw, backfillPreviewBody))))

  app.get(`${backfills}/:backfill_id`, async (c) => c.json(await service.get(c.req.param('backfill_id'))))

  app.patch(`${backfills}/:backfill_id`, takes(expectedVersion), async (c) => {
    const { expected_state_version: expected } = c.var.query
    const body = await readBody(c.req.raw, backfillChangesBody)
    return c.json(await service.update(c.req.param('backfill_id'), body, userOf(c.req.raw), expected), 202)
  })

  app.get(`${backfills}/:backfill_id/chunks`, takes(chunkQuery), async (c) =>
    c.json(await service.chunks(c.req.param('backfill_id'), c.var.query)),
  )

  for (const change of ['pause', 'resume'] as const) {
    app.post(`${backfills}/:backfill_id/${change}`, takes(expectedVersion), async (c) => {
      const { expected_state_version: expected } = c.var.query
      const body = await readBody(c.req.raw, backfillSwitchBody)
      return c.json(await service[change](c.req.param('backfill_id'), body, userOf(c.req.raw), expected), 202)
    })
  }

  app.post(`${backfills}/:backfill_id/cancel`, takes(expectedVersion), async (c) => {
    const { expected_state_version: expected } = c.var.query
    const body = await readBody(c.req.raw, backfillCancelBody)
    return c.json(await service.cancel(c.req.param('backfill_id'), body, userOf(c.req.raw), expected), 202)
  })

  app.post(`${backfills}/:backfill_id/retry-failed`, async (c) => {
    const body = await readBody(c.req.raw, backfillRetryBody)
    return c.json(await service.retryFailed(c.req.param('backfill_id'), body, userOf(c.req.raw)), 202)
  })

  return app
}
