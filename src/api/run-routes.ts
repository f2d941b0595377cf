import { Hono } from 'hono'
import { z } from 'zod'
import { runStates } from '../domain/runs/runs.table.ts'
import { triggerTypes } from '../domain/runs/trigger.ts'
import { traceparentOf } from '../lib/traceparent.ts'
import { id, timestamp } from '../model/envelope.ts'
import { problemResponse } from './problem.ts'
import { readBody } from './read-body.ts'
import { takes } from './request/parameters.ts'
import { cancelBody, newRunBody, previewBody, type RunsApi, rerunBody } from './run-contract.ts'

const listQuery = z.object({
  limit: z.coerce.number().int().min(1).max(1_000).default(20),
  cursor: z.string().max(2_048).optional(),
  state: z.enum(runStates).optional(),
  trigger: z.enum(triggerTypes).optional(),
  asset: id.optional(),
  since: timestamp.optional(),
  until: timestamp.optional(),
})
const logQuery = z.object({ task: z.string().max(512).optional(), attempt: z.coerce.number().int().min(1).optional() })

/** Routes for runs: request, list, show, follow, cancel and rerun. The caller was authenticated before. */
export function runRoutes(service: RunsApi, userOf: (request: Request) => string): Hono {
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  const runs = '/api/v1/orchestration/runs'

  app.post(runs, async (c) => {
    const body = await readBody(c.req.raw, newRunBody)
    return c.json(await service.request(body, userOf(c.req.raw), traceparentOf(c.req.header('traceparent'))), 202)
  })

  app.post(`${runs}/preview`, async (c) => c.json(await service.preview(await readBody(c.req.raw, previewBody))))

  app.get(runs, takes(listQuery), async (c) => c.json(await service.page(c.var.query)))

  app.get(`${runs}/:run_id`, async (c) => c.json(await service.get(c.req.param('run_id'))))

  app.post(`${runs}/:run_id/cancel`, async (c) => {
    const { reason } = await readBody(c.req.raw, cancelBody)
    return c.json(await service.cancel(c.req.param('run_id'), userOf(c.req.raw), reason), 202)
  })

  app.post(`${runs}/:run_id/rerun`, async (c) => {
    const body = await readBody(c.req.raw, rerunBody)
    return c.json(
      await service.rerun(c.req.param('run_id'), body, userOf(c.req.raw), traceparentOf(c.req.header('traceparent'))),
      202,
    )
  })

  app.get(`${runs}/:run_id/logs`, takes(logQuery), (c) => lines(service.logs(c.req.param('run_id'), c.var.query)))

  app.get(`${runs}/:run_id/durations`, async (c) => c.json(await service.durations(c.req.param('run_id'))))

  app.get(`${runs}/:run_id/follow`, (c) => lines(service.follow(c.req.param('run_id'), c.req.raw.signal)))

  return app
}

/** Sends one JSON object per line, each as soon as there is one. The first is awaited, so that an error still gets its own status. */
async function lines(items: AsyncIterable<unknown>): Promise<Response> {
  const iterator = items[Symbol.asyncIterator]()
  let next = await iterator.next()
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (next.done) {
        controller.close()
        return
      }
      controller.enqueue(encoder.encode(`${JSON.stringify(next.value)}\n`))
      next = await iterator.next()
    },
    async cancel() {
      await iterator.return?.()
    },
  })
  return new Response(body, { headers: { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' } })
}
