import { answer, BASE, type Route, route } from '../routing/route.ts'
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

const sensors = `${BASE}/sensors` as const
const sensor = `${sensors}/:sensor_id` as const

/** Routes for sensors. A sensor is named by its id or its name. Operators run them; administrators decide which there are. */
export const sensorRoutes = (service: SensorsApi): Route[] => [
  route({ method: 'GET', path: sensors, needs: 'viewer', query: sensorListQuery, handle: ({ query }) => service.list(query) }),
  route({
    method: 'POST',
    path: sensors,
    needs: 'admin',
    body: newSensorBody,
    statuses: [202],
    handle: ({ body, by }) => service.create(body, by.name),
  }),
  route({ method: 'GET', path: sensor, needs: 'viewer', handle: ({ params }) => service.get(params.sensor_id) }),
  route({
    method: 'PATCH',
    path: sensor,
    needs: 'admin',
    query: expectedVersion,
    body: sensorChangesBody,
    statuses: [202],
    handle: ({ params, query, body, by }) => service.update(params.sensor_id, body, by.name, query.expected_state_version),
  }),
  route({
    method: 'DELETE',
    path: sensor,
    needs: 'admin',
    query: removalQuery,
    statuses: [202],
    handle: ({ params, query: { expected_state_version, ...body }, by }) =>
      service.remove(params.sensor_id, body, by.name, expected_state_version),
  }),
  route({
    method: 'GET',
    path: `${sensor}/evals`,
    needs: 'viewer',
    query: evalQuery,
    handle: ({ params, query }) => service.evals(params.sensor_id, query),
  }),
  ...(['pause', 'resume'] as const).map((change) =>
    route({
      method: 'POST',
      path: `${sensor}/${change}`,
      needs: 'operator',
      query: expectedVersion,
      body: switchBody,
      statuses: [202],
      handle: ({ params, query, body, by }) => service[change](params.sensor_id, body, by.name, query.expected_state_version),
    }),
  ),
  route({
    method: 'POST',
    path: `${sensor}/reset-cursor`,
    needs: 'operator',
    query: expectedVersion,
    body: resetCursorBody,
    statuses: [202],
    handle: ({ params, query, body, by }) => service.resetCursor(params.sensor_id, body, by.name, query.expected_state_version),
  }),
  route({
    method: 'POST',
    path: `${sensor}/evaluate`,
    needs: 'operator',
    body: evaluateBody,
    statuses: [202, 200],
    handle: async ({ params, body, by }) => {
      const evaluated = await service.evaluate(params.sensor_id, body, by.name)
      return answer(evaluated, evaluated.dry_run ? 200 : 202)
    },
  }),
  route({
    method: 'GET',
    path: `${sensor}/dead-letters`,
    needs: 'viewer',
    query: deadLetterQuery,
    handle: ({ params, query }) => service.deadLetters(params.sensor_id, query),
  }),
  route({
    method: 'POST',
    path: `${sensor}/dead-letters/:message_id/replay`,
    needs: 'operator',
    body: replayBody,
    statuses: [202],
    handle: ({ params, body, by }) => service.replay(params.sensor_id, params.message_id, body, by.name),
  }),
]
