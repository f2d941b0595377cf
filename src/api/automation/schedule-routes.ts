import { Hono } from 'hono'
import { problemResponse } from '../problem.ts'
import { readBody } from '../read-body.ts'
import { takes } from '../request/parameters.ts'
import { expectedVersion } from './expected-version.ts'
import {
  catchupBody,
  newScheduleBody,
  removalQuery,
  type SchedulesApi,
  scheduleChangesBody,
  scheduleListQuery,
  switchBody,
  tickQuery,
  triggerBody,
} from './schedule-contract.ts'

/** Routes for schedules. A schedule is named by its id or its name. */
export function scheduleRoutes(service: SchedulesApi, userOf: (request: Request) => string): Hono {
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  const schedules = '/api/v1/orchestration/schedules'
  const automation = '/api/v1/orchestration/automation'

  app.get(schedules, takes(scheduleListQuery), async (c) => c.json(await service.list(c.var.query)))

  app.post(schedules, async (c) => {
    const body = await readBody(c.req.raw, newScheduleBody)
    return c.json(await service.create(body, userOf(c.req.raw)), 202)
  })

  app.post(`${schedules}/catchup`, async (c) => {
    const body = await readBody(c.req.raw, catchupBody)
    return c.json(await service.catchUp(body, userOf(c.req.raw)), body.dry_run ? 200 : 202)
  })

  app.get(`${schedules}/:schedule_id`, async (c) => c.json(await service.get(c.req.param('schedule_id'))))

  app.patch(`${schedules}/:schedule_id`, takes(expectedVersion), async (c) => {
    const { expected_state_version: expected } = c.var.query
    const body = await readBody(c.req.raw, scheduleChangesBody)
    return c.json(await service.update(c.req.param('schedule_id'), body, userOf(c.req.raw), expected), 202)
  })

  app.delete(`${schedules}/:schedule_id`, takes(removalQuery), async (c) => {
    const { expected_state_version: expected, ...body } = c.var.query
    return c.json(await service.remove(c.req.param('schedule_id'), body, userOf(c.req.raw), expected), 202)
  })

  app.get(`${schedules}/:schedule_id/ticks`, takes(tickQuery), async (c) =>
    c.json(await service.ticks(c.req.param('schedule_id'), c.var.query)),
  )

  app.get('/api/v1/orchestration/ticks', takes(tickQuery), async (c) => c.json(await service.allTicks(c.var.query)))

  for (const change of ['pause', 'resume'] as const) {
    app.post(`${schedules}/:schedule_id/${change}`, takes(expectedVersion), async (c) => {
      const { expected_state_version: expected } = c.var.query
      const body = await readBody(c.req.raw, switchBody)
      return c.json(await service[change](c.req.param('schedule_id'), body, userOf(c.req.raw), expected), 202)
    })
  }

  app.post(`${schedules}/:schedule_id/trigger`, takes(expectedVersion), async (c) => {
    const { expected_state_version: expected } = c.var.query
    const body = await readBody(c.req.raw, triggerBody)
    return c.json(await service.trigger(c.req.param('schedule_id'), body, userOf(c.req.raw), expected), 202)
  })

  app.get(automation, async (c) => c.json(await service.automation()))

  app.post(`${automation}/pause`, async (c) => {
    const body = await readBody(c.req.raw, switchBody)
    return c.json(await service.switchAutomation('paused', body, userOf(c.req.raw)), 202)
  })

  app.post(`${automation}/resume`, async (c) => {
    const body = await readBody(c.req.raw, switchBody)
    return c.json(await service.switchAutomation('active', body, userOf(c.req.raw)), 202)
  })

  return app
}
