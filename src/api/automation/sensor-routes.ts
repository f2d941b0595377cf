import { Hono } from 'hono'
import { problemResponse } from '../problem.ts'
import { readBody } from '../read-body.ts'
import { readQuery } from '../read-query.ts'
import { withRequestId } from '../request-id.ts'
import { expectedVersion } from './expected-version.ts'
import { removalQuery, scheduleListQuery, switchBody } from './schedule-contract.ts'
import {
  deadLetterQuery,
  evalQuery,
  evaluateBody,
  newSensorBody,
  replayBody,
  resetCursorBody,
  type SensorsApi,
  sensorChangesBody,
} from './sensor-contract.ts'

/** Routes for sensors. A sensor is named by its id or its name. */
export function sensorRoutes(service: SensorsApi, userOf: (request: Request) => string): Hono {
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  const sensors = '/api/v1/orchestration/sensors'
  const sensor = `${sensors}/:sensor_id` as const

  const expectedBy = (query: Record<string, string>) => readQuery(expectedVersion, query).expected_state_version

  app.get(sensors, async (c) => c.json(await service.list(readQuery(scheduleListQuery, c.req.query()))))

  app.post(sensors, async (c) => {
    const body = await readBody(c.req.raw, newSensorBody)
    return c.json(await service.create(body, userOf(c.req.raw)), 202)
  })

  app.get(sensor, async (c) => c.json(await service.get(c.req.param('sensor_id'))))

  app.patch(sensor, async (c) => {
    const expected = expectedBy(c.req.query())
    const body = await readBody(c.req.raw, sensorChangesBody)
    return c.json(await service.update(c.req.param('sensor_id'), body, userOf(c.req.raw), expected), 202)
  })

  app.delete(sensor, async (c) => {
    const said = withRequestId(c.req.raw, c.req.query(), removalQuery)
    const { expected_state_version: expected, ...body } = readQuery(removalQuery, said)
    return c.json(await service.remove(c.req.param('sensor_id'), body, userOf(c.req.raw), expected), 202)
  })

  app.get(`${sensor}/evals`, async (c) =>
    c.json(await service.evals(c.req.param('sensor_id'), readQuery(evalQuery, c.req.query()))),
  )

  for (const change of ['pause', 'resume'] as const) {
    app.post(`${sensor}/${change}`, async (c) => {
      const expected = expectedBy(c.req.query())
      const body = await readBody(c.req.raw, switchBody)
      return c.json(await service[change](c.req.param('sensor_id'), body, userOf(c.req.raw), expected), 202)
    })
  }

  app.post(`${sensor}/reset-cursor`, async (c) => {
    const expected = expectedBy(c.req.query())
    const body = await readBody(c.req.raw, resetCursorBody)
    return c.json(await service.resetCursor(c.req.param('sensor_id'), body, userOf(c.req.raw), expected), 202)
  })

  app.post(`${sensor}/evaluate`, async (c) => {
    const body = await readBody(c.req.raw, evaluateBody)
    const evaluated = await service.evaluate(c.req.param('sensor_id'), body, userOf(c.req.raw))
    return c.json(evaluated, evaluated.dry_run ? 200 : 202)
  })

  app.get(`${sensor}/dead-letters`, async (c) =>
    c.json(await service.deadLetters(c.req.param('sensor_id'), readQuery(deadLetterQuery, c.req.query()))),
  )

  app.post(`${sensor}/dead-letters/:message_id/replay`, async (c) => {
    const body = await readBody(c.req.raw, replayBody)
    const { sensor_id, message_id } = c.req.param()
    return c.json(await service.replay(sensor_id, message_id, body, userOf(c.req.raw)), 202)
  })

  return app
}
