import { Hono } from 'hono'
import { problemResponse } from '../problem.ts'
import { readBody } from '../read-body.ts'
import { takes } from '../request/parameters.ts'
import { expectedVersion } from './expected-version.ts'
import { removalQuery, switchBody } from './schedule-contract.ts'
import {
  deadLetterQuery,
  evalQuery,
  evaluateBody,
  newSensorBody,
  replayBody,
  resetCursorBody,
  type SensorsApi,
  sensorChangesBody,
  sensorListQuery,
} from './sensor-contract.ts'

/** Routes for sensors. A sensor is named by its id or its name. */
export function sensorRoutes(service: SensorsApi, userOf: (request: Request) => string): Hono {
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  const sensors = '/api/v1/orchestration/sensors'
  const sensor = `${sensors}/:sensor_id` as const

  app.get(sensors, takes(sensorListQuery), async (c) => c.json(await service.list(c.var.query)))

  app.post(sensors, async (c) => {
    const body = await readBody(c.req.raw, newSensorBody)
    return c.json(await service.create(body, userOf(c.req.raw)), 202)
  })

  app.get(sensor, async (c) => c.json(await service.get(c.req.param('sensor_id'))))

  app.patch(sensor, takes(expectedVersion), async (c) => {
    const { expected_state_version: expected } = c.var.query
    const body = await readBody(c.req.raw, sensorChangesBody)
    return c.json(await service.update(c.req.param('sensor_id'), body, userOf(c.req.raw), expected), 202)
  })

  app.delete(sensor, takes(removalQuery), async (c) => {
    const { expected_state_version: expected, ...body } = c.var.query
    return c.json(await service.remove(c.req.param('sensor_id'), body, userOf(c.req.raw), expected), 202)
  })

  app.get(`${sensor}/evals`, takes(evalQuery), async (c) => c.json(await service.evals(c.req.param('sensor_id'), c.var.query)))

  for (const change of ['pause', 'resume'] as const) {
    app.post(`${sensor}/${change}`, takes(expectedVersion), async (c) => {
      const { expected_state_version: expected } = c.var.query
      const body = await readBody(c.req.raw, switchBody)
      return c.json(await service[change](c.req.param('sensor_id'), body, userOf(c.req.raw), expected), 202)
    })
  }

  app.post(`${sensor}/reset-cursor`, takes(expectedVersion), async (c) => {
    const { expected_state_version: expected } = c.var.query
    const body = await readBody(c.req.raw, resetCursorBody)
    return c.json(await service.resetCursor(c.req.param('sensor_id'), body, userOf(c.req.raw), expected), 202)
  })

  app.post(`${sensor}/evaluate`, async (c) => {
    const body = await readBody(c.req.raw, evaluateBody)
    const evaluated = await service.evaluate(c.req.param('sensor_id'), body, userOf(c.req.raw))
    return c.json(evaluated, evaluated.dry_run ? 200 : 202)
  })

  app.get(`${sensor}/dead-letters`, takes(deadLetterQuery), async (c) =>
    c.json(await service.deadLetters(c.req.param('sensor_id'), c.var.query)),
  )

  app.post(`${sensor}/dead-letters/:message_id/replay`, async (c) => {
    const body = await readBody(c.req.raw, replayBody)
    const { sensor_id, message_id } = c.req.param()
    return c.json(await service.replay(sensor_id, message_id, body, userOf(c.req.raw)), 202)
  })

  return app
}
