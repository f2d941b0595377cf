import { expect, test } from 'vitest'
import { machineAccess } from '../../testing/access/machine-access.ts'
import { type AppOptions, localApp, routesOf } from '../app.ts'
import { hookRoutes } from '../hooks/hook-routes.ts'
import type { Problem } from '../problem.ts'
import { BASE } from '../routing/route.ts'
import { workerRoutes } from '../worker-routes.ts'

const nothing = {} as never
const options: AppOptions = {
  runs: { page: async () => ({ runs: [], next_cursor: null }) } as unknown as AppOptions['runs'],
  statuses: nothing,
  assets: { graph: async (select: string[]) => ({ select }) } as unknown as AppOptions['assets'],
  schedules: { remove: async (...asked: unknown[]) => ({ asked }) } as unknown as AppOptions['schedules'],
  sensors: nothing,
  backfills: nothing,
  whys: nothing,
  retention: nothing,
  alerts: nothing,
  tokens: nothing,
  access: machineAccess('secret'),
  own: () => ({ hosts: ['localhost'] }),
  instance: 'one',
  // Its services answer next to nothing.
  checksAnswers: false,
  workers: workerRoutes(nothing),
  hooks: hookRoutes(nothing),
}
const app = localApp(options)

async function ask(method: string, path: string) {
  const headers = { host: 'localhost', authorization: 'Bearer secret', 'content-type': 'application/json' }
  const response = await app.request(`http://localhost${path}`, { method, headers })
  return { status: response.status, body: (await response.json()) as Problem & Record<string, unknown> }
}

/** Every route that takes parameters, and which; all others take none. */
const parameters: Readonly<Record<string, string>> = {
  'GET /runs': 'limit, cursor, status, trigger, asset, since, until',
  'GET /runs/:run_id/logs': 'task, attempt',
  'GET /assets': 'limit, cursor, select',
  'GET /assets/graph': 'select',
  'GET /assets/:asset_key/partitions': 'limit, cursor, partition, status, order, values',
  'GET /assets/:asset_key/why': 'partition',
  'GET /partitions': 'limit, cursor, select, partition, status, order, values',
  'GET /partitions/stale': 'limit, cursor, select, cause',
  'GET /partitions/summary': 'select',
  'GET /partitions/sets/:set/keys': 'limit, cursor',
  'GET /schedules': 'limit, cursor, status',
  'PATCH /schedules/:schedule_id': 'expected_state_version',
  'DELETE /schedules/:schedule_id': 'request_id, expected_state_version, client_request_id',
  'GET /schedules/:schedule_id/ticks': 'limit, cursor, status, since, until',
  'POST /schedules/:schedule_id/pause': 'expected_state_version',
  'POST /schedules/:schedule_id/resume': 'expected_state_version',
  'POST /schedules/:schedule_id/trigger': 'expected_state_version',
  'GET /ticks': 'limit, cursor, status, since, until',
  'GET /sensors': 'limit, cursor, status',
  'PATCH /sensors/:sensor_id': 'expected_state_version',
  'DELETE /sensors/:sensor_id': 'request_id, expected_state_version, client_request_id',
  'GET /sensors/:sensor_id/evals': 'limit, cursor, status, since, until',
  'POST /sensors/:sensor_id/pause': 'expected_state_version',
  'POST /sensors/:sensor_id/resume': 'expected_state_version',
  'POST /sensors/:sensor_id/reset-cursor': 'expected_state_version',
  'GET /sensors/:sensor_id/dead-letters': 'limit, cursor, status, since, until',
  'GET /backfills': 'limit, cursor, status, asset, since, until',
  'GET /backfills/:backfill_id/chunks': 'limit, cursor, status, since, until',
  'PATCH /backfills/:backfill_id': 'expected_state_version',
  'POST /backfills/:backfill_id/pause': 'expected_state_version',
  'POST /backfills/:backfill_id/resume': 'expected_state_version',
  'POST /backfills/:backfill_id/cancel': 'expected_state_version',
  'GET /why/:kind/:name': 'at, partition, message',
  'GET /conflicts': 'limit, cursor, since, until',
  'GET /alerts': 'limit, cursor, since, until, status, kind, target',
}
const routes = routesOf(options)
// The tokens of attempts come first: without one, nothing else of a request is looked at.
const checked = routes.filter(
  ({ path, query, needs }) => path.startsWith(BASE) && query !== 'ignored' && needs !== 'task_token',
)
const names = checked.map(({ method, path }) => `${method} ${path.slice(BASE.length)}`)

test('every route that is said to take parameters exists', () => {
  expect(names.length).toBeGreaterThan(Object.keys(parameters).length)
  expect(names).toEqual(expect.arrayContaining(Object.keys(parameters)))
})

test.each(names)('%s refuses a parameter that it does not know, and says which there are', async (name) => {
  const [method = '', path = ''] = name.split(' ')
  const { status, body } = await ask(method, `${BASE}${path.replace(/:\w+/g, 'x')}?no_such_thing=1`)
  const known = parameters[name]
  expect(status).toBe(400)
  expect(body).toMatchObject({
    code: 'bad_query',
    detail: 'Unknown parameter `no_such_thing`.',
    field: 'no_such_thing',
    hint: known === undefined ? 'This route takes no parameters.' : `This route takes ${known}.`,
  })
})

test('the parameter that was probably meant is named', async () => {
  expect((await ask('GET', `${BASE}/runs?stat=FAILED`)).body.detail).toBe('Unknown parameter `stat`. Did you mean `status`?')
})

test('known parameters reach the handler, repeated ones and other names of the id of a request too', async () => {
  expect((await ask('GET', `${BASE}/runs?limit=3&status=FAILED`)).status).toBe(200)
  expect((await ask('GET', `${BASE}/assets/graph?select=a&select=b`)).body).toEqual({ select: ['a', 'b'] })
  const removed = await ask('DELETE', `${BASE}/schedules/nightly?client_request_id=r1&expected_state_version=4`)
  expect(removed.body).toEqual({ asked: ['nightly', { request_id: 'r1' }, 'local', 4] })
})

test('a route that does not exist is not found, and senders of messages and health probes may add what they like', async () => {
  expect((await ask('GET', `${BASE}/nothing?a=1`)).status).toBe(404)
  expect((await ask('GET', '/health/live?t=1')).status).toBe(200)
  const hooks = routes.filter(({ path, method }) => path.startsWith('/hooks') && method === 'POST')
  expect(hooks.length).toBeGreaterThan(0)
  for (const { path } of hooks) expect((await ask('POST', `${path}?a=1`)).body.detail).not.toMatch(/parameter/)
})
