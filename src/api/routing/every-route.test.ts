import type { Server } from 'node:http'
import { connect } from 'node:net'
import { serve } from '@hono/node-server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import { dispatchId, queueSafeId } from '../../domain/dispatch/dispatch-ids.ts'
import { sha256Bytes } from '../../lib/hash.ts'
import { HOUR_MS } from '../../lib/time.ts'
import { otherProofs, proofOf } from '../../testing/access/other-proofs.ts'
import { pathTricks } from '../../testing/access/path-tricks.ts'
import { seededBytes } from '../../testing/seeded-bytes.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { RefusedCalls } from '../access/refused-calls.ts'
import { type Role, roles } from '../access/roles.ts'
import { type AppOptions, localApp, routesOf } from '../app.ts'
import { hookRoutes } from '../hooks/hook-routes.ts'
import { LoginLinks } from '../login/login-links.ts'
import { loginRoutes } from '../login/login-routes.ts'
import { CSRF_HEADER, Sessions } from '../login/sessions.ts'
import { OidcTokens } from '../oidc/oidc-tokens.ts'
import { probeRoutes } from '../probes/probe-routes.ts'
import type { Problem } from '../problem.ts'
import { TaskTokens } from '../task-tokens.ts'
import { ApiTokens } from '../tokens/api-tokens.ts'
import { tokenAccess } from '../tokens/token-access.ts'
import { workerRoutes } from '../worker-routes.ts'
import { BASE, type Need, type Route } from './route.ts'

/** Who may call what, once more: a route that is added, or given to somebody else, must be entered here. */
const entries: Readonly<Record<Need, string>> = {
  nothing: `
    GET /health/live
    GET /health/ready
    GET /login
    POST /auth/login
    POST /auth/logout
    GET /api/v1/openapi.json
    GET /api/v1/docs`,
  signature: `
    POST /hooks/:tenant/:workspace/:path
    OPTIONS /hooks/:tenant/:workspace/:path
    POST /pubsub/:tenant/:workspace/:sensor`,
  task_token: `
    POST ~/tasks/:task_id/started
    POST ~/tasks/:task_id/heartbeat
    POST ~/tasks/:task_id/completed`,
  worker: 'POST ~/workers/claim',
  viewer: `
    GET /metrics
    GET /auth/me
    POST /auth/links
    GET ~/runs
    POST ~/runs/preview
    GET ~/runs/:run_id
    GET ~/runs/:run_id/logs
    GET ~/runs/:run_id/durations
    GET ~/runs/:run_id/follow
    GET ~/assets
    GET ~/assets/graph
    GET ~/assets/:key
    GET ~/assets/:asset_key/partitions
    GET ~/assets/:asset_key/partitions/summary
    GET ~/assets/:asset_key/why
    GET ~/partitions
    GET ~/partitions/stale
    GET ~/partitions/summary
    GET ~/partitions/sets/:set/keys
    GET ~/schedules
    GET ~/schedules/:schedule_id
    GET ~/schedules/:schedule_id/ticks
    GET ~/ticks
    GET ~/automation
    GET ~/sensors
    GET ~/sensors/:sensor_id
    GET ~/sensors/:sensor_id/evals
    GET ~/sensors/:sensor_id/dead-letters
    GET ~/backfills
    POST ~/backfills/preview
    GET ~/backfills/:backfill_id
    GET ~/backfills/:backfill_id/chunks
    GET ~/why/:kind/:name
    GET ~/conflicts
    GET ~/storage
    GET ~/alerts
    GET ~/alerts/targets
    GET ~/alerts/:alert_id`,
  operator: `
    POST ~/runs
    POST ~/runs/:run_id/cancel
    POST ~/runs/:run_id/rerun
    POST ~/assets/:key/materializations
    POST ~/assets/:key/wipe
    POST ~/partitions/sets/:set/keys
    POST ~/schedules/catchup
    POST ~/schedules/:schedule_id/pause
    POST ~/schedules/:schedule_id/resume
    POST ~/schedules/:schedule_id/trigger
    POST ~/automation/pause
    POST ~/automation/resume
    POST ~/sensors/:sensor_id/pause
    POST ~/sensors/:sensor_id/resume
    POST ~/sensors/:sensor_id/reset-cursor
    POST ~/sensors/:sensor_id/evaluate
    POST ~/sensors/:sensor_id/dead-letters/:message_id/replay
    POST ~/backfills
    PATCH ~/backfills/:backfill_id
    POST ~/backfills/:backfill_id/pause
    POST ~/backfills/:backfill_id/resume
    POST ~/backfills/:backfill_id/cancel
    POST ~/backfills/:backfill_id/retry-failed
    POST ~/alerts/test`,
  admin: `
    POST ~/leader/hand-over
    POST ~/schedules
    PATCH ~/schedules/:schedule_id
    DELETE ~/schedules/:schedule_id
    POST ~/sensors
    PATCH ~/sensors/:sensor_id
    DELETE ~/sensors/:sensor_id
    POST ~/retention/collect
    POST ~/assets/:key/purge
    GET ~/tokens
    POST ~/tokens
    POST ~/tokens/:token_id/revoke`,
}

/** Which callers of a role get in where what is needed. */
const may: Readonly<Record<Role, readonly Role[]>> = {
  viewer: ['viewer', 'operator', 'admin'],
  operator: ['operator', 'admin'],
  admin: ['admin'],
  worker: ['worker', 'admin'],
}

const scope = { tenant_id: 'acme', workspace_id: 'analytics' }
const clock = new VirtualClock(Date.UTC(2026, 0, 1))
const store = memoryStore()
/** Every look at it is a second after the one before, so that every token is looked up anew. */
const hasty = { now: () => clock.now(), monotonic: () => (seconds += 1_000), sleep: async () => undefined, after: clock.after }
let seconds = 0
const tokens = new ApiTokens({ store, scope, clock: hasty, random: seededBytes(1) })
const oidc = new OidcTokens({ clock })
const sessions = new Sessions({ secret: 'a secret of the machine', clock, random: seededBytes(3), tokens, oidc })
const access = tokenAccess('token-of-the-machine', tokens, { oidc, sessions })
/** What the services behind the routes were asked. */
const asked: unknown[][] = []
/** A service that answers everything, and is never there for a caller who was refused. */
const service = (name: string): never =>
  new Proxy(
    {},
    {
      get:
        (_, method) =>
        async (...given: unknown[]) =>
          asked.push([name, method, ...given]),
    },
  ) as never
const taskTokens = new TaskTokens({ keys: [{ id: 'k1', secret: sha256Bytes('k1') }], clock })
const noHooks = { scope, sensorsAt: () => [], sensorNamed: () => undefined } as never
const refused = new RefusedCalls(clock, () => undefined)
const options: AppOptions = {
  runs: service('runs'),
  statuses: service('statuses'),
  assets: service('assets'),
  schedules: service('schedules'),
  sensors: service('sensors'),
  backfills: service('backfills'),
  whys: service('whys'),
  retention: service('retention'),
  alerts: service('alerts'),
  tokens: service('tokens'),
  access,
  login: loginRoutes({ access, sessions, links: new LoginLinks(clock, seededBytes(4)), clock }),
  probes: probeRoutes({ unready: async () => [], metrics: () => '' }),
  refused,
  own: () => ({ hosts: ['localhost', '127.0.0.1'] }),
  instance: 'one',
  // The services answer anything.
  checksAnswers: false,
  handOver: () => void asked.push(['hand over']),
  workers: workerRoutes({ callbacks: service('tasks'), tokens: taskTokens, scope, clock, baseUrl: () => '' }),
  hooks: hookRoutes(noHooks),
}
const app = localApp(options)
const routes = routesOf(options)
const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>): string => `${method} ${path.replace(BASE, '~')}`
const named = routes.map((route) => [nameOf(route), route] as const)
const needing = (wanted: (need: Need) => boolean) => named.filter(([, { needs }]) => wanted(needs))
const isRole = (need: Need): need is Role => roles.some((role) => role === need)

/** A body with which many of them get as far as the service. */
const BODY = JSON.stringify({})

async function call(method: string, path: string, token?: string, more: Record<string, string> = {}) {
  asked.length = 0
  const headers = { host: 'localhost', 'content-type': 'application/json', ...more }
  const response = await app.request(`http://localhost${path.replace('/why/:kind', '/why/run').replace(/:\w+/g, 'x')}`, {
    method,
    headers: { ...headers, ...proofOf(token) },
    ...(method !== 'GET' && method !== 'HEAD' && { body: BODY }),
  })
  const text = await response.text()
  const { code } = (text.startsWith('{') ? JSON.parse(text) : {}) as Partial<Problem>
  return { status: response.status, code, allow: response.headers.get('allow'), asked: [...asked] }
}

const given: Record<string, string> = {}
/** Those whom no route lets in, and what they are told. */
const strangers: Readonly<Record<string, string>> = {
  nobody: 'unauthenticated',
  wrong: 'unauthenticated',
  guessed: 'unauthenticated',
  expired: 'token_expired',
  revoked: 'token_revoked',
  'other tenant': 'unauthenticated',
  'task token': 'unauthenticated',
  'expired OIDC': 'token_expired',
  'OIDC of another issuer': 'unauthenticated',
  'OIDC for another audience': 'unauthenticated',
  'forged cookie': 'unauthenticated',
  'cookie of a revoked token': 'token_revoked',
  'cookie of an expired token': 'token_expired',
  'cookie that was ended': 'unauthenticated',
}
let closeIssuers = (): void => undefined
afterAll(() => closeIssuers())
beforeAll(async () => {
  const make = async (name: string, role: Role, expires_at?: string) =>
    await tokens.create({ name, role, ...(expires_at !== undefined && { expires_at }) }, 'ana')
  for (const role of roles) given[role] = (await make(role, role)).token
  given['wrong'] = 'servo'
  given['guessed'] = `${given['admin']?.slice(0, -1)}${given['admin']?.endsWith('A') ? 'B' : 'A'}`
  given['expired'] = (await make('old', 'admin', '2026-01-01T00:30:00.000Z')).token
  const gone = await make('gone', 'admin')
  given['revoked'] = gone.token
  await tokens.revoke(gone.token_id, 'ana')
  const other = { store, scope: { ...scope, tenant_id: 'evil' }, clock, random: seededBytes(2) }
  given['other tenant'] = (await new ApiTokens(other).create({ name: 'theirs', role: 'admin' }, 'eve')).token
  const grant = { ...scope, run_id: 'r', task_key: 't', attempt: 1, attempt_id: 'a' }
  given['task token'] = taskTokens.mint(grant).token
  const { proofs, close } = await otherProofs(given, { now: clock.now(), tokens, oidc, sessions, access })
  Object.assign(given, proofs)
  closeIssuers = close
  await clock.advance(HOUR_MS / 2)
})

test('[U1] every route has an entry here, with what it needs, and no entry is without a route', () => {
  const entered = Object.entries(entries).flatMap(([need, lines]) =>
    lines
      .trim()
      .split(/\n\s*/)
      .map((line) => `${line} ${need}`),
  )
  expect(named.map(([name, { needs }]) => `${name} ${needs}`).toSorted()).toEqual(entered.toSorted())
})

test('[U1] the router has no route that is not declared', () => {
  const served = app.routes.filter(({ method }) => method !== 'ALL').map(({ method, path }) => `${method} ${path}`)
  expect(served.toSorted()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).toSorted())
})

describe.each(needing(isRole))('[U2] %s', (_, { method, path, needs }) => {
  test.each(Object.entries(strangers))('refuses %s as %s', async (who, code) => {
    expect(await call(method, path, given[who])).toMatchObject({ status: 401, code, asked: [] })
  })

  test.each(roles)('is for %s or not, by an API token, a token of an issuer, or a cookie of either', async (role) => {
    for (const who of [role, `OIDC ${role}`, `cookie ${role}`, `cookie of OIDC ${role}`]) {
      const { status, code, asked: heard } = await call(method, path, given[who])
      if (isRole(needs) && may[needs].includes(role)) expect([who, [401, 403, 404, 405].includes(status)]).toEqual([who, false])
      else expect([who, status, code, heard]).toEqual([who, 403, 'not_permitted', []])
    }
  })

  test('takes no cookie that a page of another site could have sent', async () => {
    const cookie = given['cookie admin']?.trim() ?? ''
    const own = { cookie, origin: 'http://localhost' }
    const forged: Record<string, string>[] = [
      { ...own, origin: 'https://evil.example', [CSRF_HEADER]: '1' },
      { ...own, origin: 'http://localhost:9999', [CSRF_HEADER]: '1' },
      { ...own, 'sec-fetch-site': 'same-site', [CSRF_HEADER]: '1' },
      { ...own, 'sec-fetch-site': 'cross-site', [CSRF_HEADER]: '1' },
      ...(method === 'GET' ? [] : [{ cookie }, own, { cookie, [CSRF_HEADER]: '1' }]),
    ]
    for (const headers of forged) {
      const { status, code, asked: heard } = await call(method, path, undefined, headers)
      expect([status, code, heard]).toEqual([403, 'forbidden', []])
    }
  })

  test('looks at nothing of a request before its caller is known', async () => {
    const { status, asked: heard } = await call(method, `${path}?no_such_parameter=1`, undefined, { 'content-type': 'text/x' })
    expect([status, heard]).toEqual([401, []])
  })
})

test('[U2] many calls of those who may reach the service, so that it is not something else that refused the others', async () => {
  const heard: string[] = []
  for (const [name, { method, path }] of needing(isRole))
    if ((await call(method, path, given['admin'])).asked.length > 0) heard.push(name)
  expect(heard.length).toBeGreaterThan(45)
})

describe.each(needing((need) => need === 'task_token'))('[U2] %s', (_, { method, path }) => {
  const others = roles.flatMap((role) => [`OIDC ${role}`, `cookie ${role}`])
  test.each([...roles, ...others, ...Object.keys(strangers), 'machine'])('refuses %s', async (who) => {
    const token = who === 'machine' ? 'token-of-the-machine' : given[who]
    const { status, asked: heard } = await call(method, path, token)
    // The token of an attempt is genuine, but the path names another.
    expect([status, heard]).toEqual([who === 'task token' ? 403 : 401, []])
  })

  test('takes the token of its attempt', async () => {
    const grant = { ...scope, run_id: 'r', task_key: 't', attempt: 1, attempt_id: 'a' }
    const own = queueSafeId('d', dispatchId('r', 't', 1))
    const { status } = await call(method, path.replace(':task_id', own), taskTokens.mint(grant).token)
    expect([401, 403, 404, 405]).not.toContain(status)
  })
})

describe.each(named)('[U1] other methods than that of %s', (_, { path }) => {
  const concrete = path.replace('/why/:kind', '/why/run').replace(/:\w+/g, 'x')
  const matches = (declared: string) => new RegExp(`^${declared.replace(/:\w+/g, '[^/]+')}$`).test(concrete)
  const there = routes.filter((each) => matches(each.path)).map(({ method }) => method as string)

  test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])(
    '%s: 405, with those that exist',
    async (method) => {
      if (there.includes(method) || (method === 'HEAD' && there.includes('GET'))) return
      const answered = await call(method, path, given['admin'])
      expect([answered.status, answered.asked]).toEqual([405, []])
      expect(answered.allow?.split(', ')).toEqual([...new Set([...there, ...(there.includes('GET') ? ['HEAD'] : [])])].sort())
    },
  )
})

test('[U1] HEAD needs what GET needs', async () => {
  expect((await call('HEAD', `${BASE}/runs`)).status).toBe(401)
  expect((await call('HEAD', `${BASE}/runs`, given['viewer'])).status).toBe(200)
  expect((await call('HEAD', `${BASE}/tokens`, given['operator'])).status).toBe(403)
})

test('[U6] refusals are counted by their reason', async () => {
  const before = { ...refused.counts }
  await call('GET', `${BASE}/runs`)
  await call('POST', `${BASE}/tokens`, given['viewer'])
  await call('GET', `${BASE}/runs`, given['viewer'], { origin: 'https://evil.example' })
  await call('POST', `${BASE}/tasks/x/started`, given['admin'])
  expect(refused.counts).toEqual({
    ...before,
    unauthenticated: before.unauthenticated + 2,
    not_permitted: before.not_permitted + 1,
    forbidden: before.forbidden + 1,
  })
})

describe('[U5] the actor', () => {
  test('is who the token names, whatever the header says', async () => {
    const { asked: heard } = await call('POST', `${BASE}/automation/pause`, given['operator'], { 'x-servo-user': 'root' })
    expect(heard).toEqual([['schedules', 'switchAutomation', 'paused', {}, expect.stringMatching(/^operator \(tok_\w{16}\)$/)]])
  })

  test('is the user that the header names with the token of the machine alone', async () => {
    const path = `${BASE}/automation/pause`
    const { asked: heard } = await call('POST', path, 'token-of-the-machine', { 'x-servo-user': 'ana' })
    expect(heard).toEqual([['schedules', 'switchAutomation', 'paused', {}, 'ana']])
    expect((await call('POST', path, undefined, { 'x-servo-user': 'ana' })).status).toBe(401)
  })
})

describe('[U1] tricks with paths, over a connection', () => {
  /** Sends a path as it is; clients of a higher level would tidy it. */
  async function ask(method: string, path: string, token: string | undefined): Promise<number> {
    const port = await new Promise<number>((resolve) => {
      const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, (at) => resolve(at.port)) as Server
      onTestFinished(() => {
        server.closeAllConnections()
        server.close()
      })
    })
    asked.length = 0
    const socket = connect(port, '127.0.0.1')
    const head = [`${method} ${path} HTTP/1.1`, `host: 127.0.0.1:${port}`, 'connection: close', 'content-length: 0']
    if (token !== undefined) head.push(`authorization: Bearer ${token}`)
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    let heard = ''
    for await (const chunk of socket) heard += chunk
    return Number(heard.split(' ')[1])
  }

  const target = `${BASE}/automation/pause`

  test.each(pathTricks(target))('%s lets in nobody who may not call the path that it stands for', async (path) => {
    for (const [method, token] of [
      ['POST', undefined],
      ['POST', given['viewer']],
      ['GET', undefined],
    ] as const) {
      const status = await ask(method, path, token)
      expect([status, asked]).toEqual([expect.toSatisfy((each) => [400, 401, 403, 404, 405].includes(each)), []])
    }
  })

  test.each(['CONNECT', 'TRACE'])('%s is no way in', async (method) => {
    const status = await ask(method, target, given['viewer'])
    expect([status === 200 || status === 202, asked]).toEqual([false, []])
  })
})
