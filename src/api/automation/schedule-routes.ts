import { answer, BASE, type Route, route } from '../routing/route.ts'
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

const schedules = `${BASE}/schedules` as const
const schedule = `${schedules}/:schedule_id` as const
const automation = `${BASE}/automation` as const

/** Routes for schedules. A schedule is named by its id or its name. Operators run them; administrators decide which there are. */
export const scheduleRoutes = (service: SchedulesApi): Route[] => [
  route({
    method: 'GET',
    path: schedules,
    needs: 'viewer',
    query: scheduleListQuery,
    handle: ({ query }) => service.list(query),
  }),
  route({
    method: 'POST',
    path: schedules,
    needs: 'admin',
    body: newScheduleBody,
    statuses: [202],
    handle: ({ body, by }) => service.create(body, by.name),
  }),
  route({
    method: 'POST',
    path: `${schedules}/catchup`,
    needs: 'operator',
    body: catchupBody,
    statuses: [202, 200],
    handle: async ({ body, by }) => answer(await service.catchUp(body, by.name), body.dry_run ? 200 : 202),
  }),
  route({ method: 'GET', path: schedule, needs: 'viewer', handle: ({ params }) => service.get(params.schedule_id) }),
  route({
    method: 'PATCH',
    path: schedule,
    needs: 'admin',
    query: expectedVersion,
    body: scheduleChangesBody,
    statuses: [202],
    handle: ({ params, query, body, by }) => service.update(params.schedule_id, body, by.name, query.expected_state_version),
  }),
  route({
    method: 'DELETE',
    path: schedule,
    needs: 'admin',
    query: removalQuery,
    statuses: [202],
    handle: ({ params, query: { expected_state_version, ...body }, by }) =>
      service.remove(params.schedule_id, body, by.name, expected_state_version),
  }),
  route({
    method: 'GET',
    path: `${schedule}/ticks`,
    needs: 'viewer',
    query: tickQuery,
    handle: ({ params, query }) => service.ticks(params.schedule_id, query),
  }),
  route({
    method: 'GET',
    path: `${BASE}/ticks`,
    needs: 'viewer',
    query: tickQuery,
    handle: ({ query }) => service.allTicks(query),
  }),
  ...(['pause', 'resume'] as const).map((change) =>
    route({
      method: 'POST',
      path: `${schedule}/${change}`,
      needs: 'operator',
      query: expectedVersion,
      body: switchBody,
      statuses: [202],
      handle: ({ params, query, body, by }) => service[change](params.schedule_id, body, by.name, query.expected_state_version),
    }),
  ),
  route({
    method: 'POST',
    path: `${schedule}/trigger`,
    needs: 'operator',
    query: expectedVersion,
    body: triggerBody,
    statuses: [202],
    handle: ({ params, query, body, by }) => service.trigger(params.schedule_id, body, by.name, query.expected_state_version),
  }),
  route({ method: 'GET', path: automation, needs: 'viewer', handle: () => service.automation() }),
  ...(['pause', 'resume'] as const).map((change) =>
    route({
      method: 'POST',
      path: `${automation}/${change}`,
      needs: 'operator',
      body: switchBody,
      statuses: [202],
      handle: ({ body, by }) => service.switchAutomation(change === 'pause' ? 'paused' : 'active', body, by.name),
    }),
  ),
]
