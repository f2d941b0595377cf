import { describe, expect, test } from 'vitest'
import type { AttemptResult, DispatchEnvelope } from '../contract/dispatch.ts'
import { attemptId, dispatchId, queueSafeId } from '../domain/dispatch/dispatch-ids.ts'
import { sha256Bytes } from '../lib/hash.ts'
import { HOUR_MS, SECOND_MS } from '../lib/time.ts'
import { applied, duplicate, ignored, type Verdict, waitFor } from '../model/event.ts'
import { machineAccess } from '../testing/access/machine-access.ts'
import { VirtualClock } from '../testing/virtual-clock.ts'
import { routerOf } from './routing/router.ts'
import { type AttemptGrant, TaskTokens } from './task-tokens.ts'
import type { HeartbeatAnswer, StartAnswer, TaskCallbacks, WorkRequest } from './worker-contract.ts'
import { workerRoutes } from './worker-routes.ts'

const scope = { tenant_id: 'acme', workspace_id: 'prod' }
const base = '/api/v1/orchestration'

function attemptOf(task_key: string, attempt = 1): AttemptGrant & { task_id: string } {
  const run_id = 'run_1'
  const task_id = queueSafeId('d', dispatchId(run_id, task_key, attempt))
  return { ...scope, run_id, task_key, attempt, attempt_id: attemptId(run_id, task_key, attempt), task_id }
}
const orders = attemptOf('orders')

/** A server whose state is what the test says it is, and which remembers what it was told. */
class Server implements TaskCallbacks {
  readonly clock = new VirtualClock()
  readonly tokens = new TaskTokens({ keys: [{ id: 'k1', secret: sha256Bytes('k1') }], clock: this.clock })
  readonly app = routerOf(
    workerRoutes({
      callbacks: this,
      tokens: this.tokens,
      scope,
      clock: this.clock,
      baseUrl: () => 'https://servo.example',
    }),
    machineAccess('worker-token'),
  )
  readonly heard: unknown[] = []
  readonly listeners = new Set<() => void>()
  work: DispatchEnvelope[] = []
  start: StartAnswer = { verdict: applied, should_cancel: false }
  beat: HeartbeatAnswer = { verdict: applied, should_cancel: false }
  verdict: Verdict = applied

  async started(grant: AttemptGrant, body: { worker_id: string }) {
    this.heard.push(['started', grant.attempt_id, body])
    return this.start
  }
  async heartbeat(grant: AttemptGrant, body: object) {
    this.heard.push(['heartbeat', grant.attempt_id, body])
    return this.beat
  }
  async completed(grant: AttemptGrant, result: AttemptResult) {
    this.heard.push(['completed', grant.attempt_id, result])
    return this.verdict
  }
  async takeWork(request: WorkRequest) {
    this.heard.push(['takeWork', request])
    return this.work.splice(0, request.capacity)
  }
  onWork(call: () => void) {
    this.listeners.add(call)
    return () => this.listeners.delete(call)
  }

  async post(path: string, body?: unknown, { token = this.tokens.mint(orders).token, headers = {}, ...init }: Posting = {}) {
    const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
    const response = await this.app.request(`${base}${path}`, {
      method: 'POST',
      ...(text !== undefined && { body: text }),
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      ...init,
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown>, headers: response.headers }
  }

  about(what: 'started' | 'heartbeat' | 'completed', body?: unknown, posting?: Posting) {
    return this.post(`/tasks/${orders.task_id}/${what}`, body, posting)
  }
}
interface Posting extends Pick<RequestInit, 'signal'> {
  token?: string
  headers?: Record<string, string>
}

describe('a worker', () => {
  test('says that it has begun, that it is alive and how it ended', async () => {
    const server = new Server()
    expect(await server.about('started', { worker_id: 'w1' })).toMatchObject({ status: 200, body: { should_cancel: false } })
    expect(await server.about('heartbeat')).toMatchObject({ status: 200, body: { should_cancel: false } })
    const result = { outcome: 'SUCCEEDED', materialization_id: 'm1', output: { rows: 3 }, attempt_id: orders.attempt_id }
    expect(await server.about('completed', result)).toMatchObject({ status: 200, body: { accepted: true } })
    expect(server.heard).toEqual([
      ['started', orders.attempt_id, { worker_id: 'w1' }],
      ['heartbeat', orders.attempt_id, { worker_id: undefined }],
      [
        'completed',
        orders.attempt_id,
        { outcome: 'SUCCEEDED', materialization_id: 'm1', output: { rows: 3, metadata: {}, checks: [] } },
      ],
    ])
  })

  test('is asked to stop when its run was cancelled', async () => {
    const server = new Server()
    server.start = server.beat = { verdict: applied, should_cancel: true, reason: 'the run was cancelled' }
    const stop = { status: 200, body: { should_cancel: true, reason: 'the run was cancelled' } }
    expect(await server.about('started', { worker_id: 'w1' })).toMatchObject(stop)
    expect(await server.about('heartbeat', {})).toMatchObject(stop)
  })

  test.each(['stale_attempt', 'task_over', 'run_over', 'sealed'])(
    '[F8] is never told that a result was accepted which was dropped: %s',
    async (reason) => {
      const server = new Server()
      server.verdict = ignored(reason)
      server.start = { verdict: ignored(reason), should_cancel: false }
      const dropped = { status: 409, body: { code: reason, should_cancel: true, hint: expect.stringMatching(/^Stop/) } }
      expect(await server.about('completed', { outcome: 'SUCCEEDED' })).toMatchObject(dropped)
      expect(await server.about('started', { worker_id: 'w1' })).toMatchObject(dropped)
      server.beat = { verdict: ignored(reason), should_cancel: false }
      expect(await server.about('heartbeat')).toMatchObject({ status: 200, body: { should_cancel: true, reason } })
    },
  )

  test('that says the same result again, because it never heard the answer, is told the same', async () => {
    const server = new Server()
    server.verdict = duplicate
    expect(await server.about('completed', { outcome: 'SUCCEEDED' })).toMatchObject({ status: 200, body: { accepted: true } })
  })

  test('whose result waits for facts still on their way is told that it is kept', async () => {
    const server = new Server()
    server.verdict = waitFor('task:run_1:orders')
    expect((await server.about('completed', { outcome: 'SUCCEEDED' })).status).toBe(202)
    server.verdict = { kind: 'parked', on: 'x', reason: 'invalid_payload' }
    expect((await server.about('completed', { outcome: 'SUCCEEDED' })).status).toBe(500)
  })

  test('that is the second to begin an attempt stops, the first may say twice that it has begun', async () => {
    const server = new Server()
    server.start = { verdict: duplicate, worker_id: 'w1', should_cancel: false }
    expect((await server.about('started', { worker_id: 'w1' })).status).toBe(200)
    expect(await server.about('started', { worker_id: 'w2' })).toMatchObject({
      status: 409,
      body: { code: 'already_started', should_cancel: true },
    })
  })

  test('with a long task gets a new token in time, and goes on with it', async () => {
    const server = new Server()
    const first = server.tokens.mint(orders).token
    expect((await server.about('heartbeat', {}, { token: first })).body).not.toHaveProperty('token')
    await server.clock.advance(HOUR_MS / 2 + 1)
    const { body } = await server.about('heartbeat', {}, { token: first })
    expect(body).toMatchObject({ token: expect.any(String), token_expires_at: expect.any(String) })
    await server.clock.advance(HOUR_MS / 2)
    expect(await server.about('heartbeat', {}, { token: first })).toMatchObject({
      status: 401,
      body: { code: 'token_expired' },
    })
    expect((await server.about('completed', { outcome: 'SUCCEEDED' }, { token: body['token'] as string })).status).toBe(200)
  })
})

describe('a worker is refused', () => {
  test('without a token, with an unknown token, and with an API token', async () => {
    const server = new Server()
    for (const headers of [{ authorization: '' }, { authorization: 'Basic eDp5' }]) {
      expect(await server.about('heartbeat', {}, { headers })).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
    }
    const refused = await server.about('heartbeat', {}, { token: 'worker-token' })
    expect(refused.status).toBe(401)
    expect(refused.headers.get('www-authenticate')).toBe('Bearer')
    expect(refused.headers.get('content-type')).toBe('application/problem+json')
    expect(server.heard).toEqual([])
  })

  test.each([
    ['task', attemptOf('revenue'), 'wrong_attempt'],
    ['attempt', attemptOf('orders', 2), 'wrong_attempt'],
    ['workspace', { ...orders, workspace_id: 'dev' }, 'wrong_workspace'],
    ['tenant', { ...orders, tenant_id: 'other' }, 'wrong_workspace'],
  ])('with the token of another %s', async (_, grant, code) => {
    const server = new Server()
    const { token } = server.tokens.mint(grant)
    expect(await server.about('completed', { outcome: 'FAILED' }, { token })).toMatchObject({ status: 403, body: { code } })
    expect(server.heard).toEqual([])
  })

  test('when the body speaks of another attempt than the token', async () => {
    const answer = await new Server().about('started', { worker_id: 'w1', attempt_id: 'a_other' })
    expect(answer).toMatchObject({ status: 403, body: { code: 'wrong_attempt' } })
  })

  const deep = `{"outcome":"SUCCEEDED","metrics":${'{"a":'.repeat(40)}1${'}'.repeat(40)}}`
  const large = JSON.stringify({ outcome: 'SUCCEEDED', materialization_id: 'x'.repeat(1 << 20) })
  test.each<[string, unknown, number, string, (string | undefined)?, Record<string, string>?]>([
    ['nothing', undefined, 400, 'bad_body', 'outcome'],
    ['an unknown outcome', { outcome: 'GREAT' }, 400, 'bad_body', 'outcome'],
    ['a misspelt field', { outcome: 'SUCCEEDED', materialisation_id: 'm' }, 400, 'bad_body', 'materialisation_id'],
    ['a misspelt field further in', { outcome: 'SUCCEEDED', output: { row: 3 } }, 400, 'bad_body', 'output.row'],
    [
      'a misspelt field in a list',
      { outcome: 'SUCCEEDED', output: { checks: [{ name: 'a', ok: true, severity: 'warn', x: 1 }] } },
      400,
      'bad_body',
      'output.checks.0.x',
    ],
    [
      'a wrong type',
      { outcome: 'FAILED', error: { category: 'user', message: 3, retryable: true } },
      400,
      'bad_body',
      'error.message',
    ],
    [
      'a path that leads out',
      { outcome: 'SUCCEEDED', materialization_id: 'm', output: { path: '../../../../outside.parquet' } },
      400,
      'bad_body',
      'output.path',
    ],
    ['less than no rows', { outcome: 'SUCCEEDED', output: { rows: -1 } }, 400, 'bad_body', 'output.rows'],
    ['half a row', { outcome: 'SUCCEEDED', output: { rows: 0.5 } }, 400, 'bad_body', 'output.rows'],
    ['more bytes than there are', '{"outcome":"SUCCEEDED","output":{"bytes":1e999}}', 400, 'bad_body', 'output.bytes'],
    ['a list', [], 400, 'bad_body'],
    ['a number', '7', 400, 'bad_body'],
    ['no JSON', '{"outcome":', 400, 'bad_json'],
    ['a prototype', '{"outcome":"SUCCEEDED","output":{"metadata":{"__proto__":{}}}}', 400, 'bad_body', '__proto__'],
    ['too many levels', deep, 400, 'bad_body'],
    ['levels without end', '['.repeat(500_000), 400, 'bad_json'],
    ['half a million levels', '['.repeat(500_000) + ']'.repeat(500_000), 400, 'bad_body'],
    ['more than a mebibyte', large, 413, 'body_too_large'],
    [
      'a form',
      'outcome=SUCCEEDED',
      415,
      'unsupported_media_type',
      undefined,
      { 'content-type': 'application/x-www-form-urlencoded' },
    ],
    [
      'another character set',
      {},
      415,
      'unsupported_media_type',
      undefined,
      { 'content-type': 'application/json; charset=latin1' },
    ],
    ['a compressed body', {}, 415, 'unsupported_media_type', undefined, { 'content-encoding': 'gzip' }],
    ['a false length', large, 413, 'body_too_large', undefined, { 'content-length': '10' }],
    ['a length too large', {}, 413, 'body_too_large', undefined, { 'content-length': '99999999' }],
  ])('when it sends %s', async (_, body, status, code, field, headers = {}) => {
    const server = new Server()
    const answer = await server.about('completed', body, { headers })
    expect(answer).toMatchObject({
      status,
      body: { status, code, type: `urn:servo:problem:${code}`, detail: expect.any(String), hint: expect.any(String) },
    })
    expect(answer.body['field']).toBe(field)
    expect(server.heard).toEqual([])
  })

  test('text that is no UTF-8', async () => {
    const server = new Server()
    const headers = { authorization: `Bearer ${server.tokens.mint(orders).token}`, 'content-type': 'application/json' }
    const body = new Uint8Array([0x7b, 0xff, 0x7d])
    const answer = await server.app.request(`${base}/tasks/${orders.task_id}/completed`, { method: 'POST', headers, body })
    expect(answer.status).toBe(400)
  })

  test('where there is nothing, in the same form', async () => {
    expect(await new Server().post('/tasks/x/finished', {})).toMatchObject({ status: 404, body: { code: 'no_such_route' } })
  })

  test('without a word about what is inside when the server has a mistake', async () => {
    const server = new Server()
    server.completed = () => Promise.reject(new TypeError('password=hunter2'))
    const answer = await server.about('completed', { outcome: 'SUCCEEDED' })
    expect(answer).toMatchObject({ status: 500, body: { code: 'internal' } })
    expect(JSON.stringify(answer.body)).not.toContain('hunter2')
  })
})

describe('a worker that pulls', () => {
  const token = 'worker-token'
  const dispatched = (task_key: string) => {
    const { tenant_id: _, workspace_id: __, ...attempt } = attemptOf(task_key)
    return attempt
  }
  const envelope: DispatchEnvelope = { ...dispatched('orders'), asset_key: 'orders', payload: { inputs: {}, labels: {} } }
  const ask = (server: Server, body: object, posting: Posting = {}) =>
    server.post('/workers/claim', { worker_id: 'w1', ...body }, { token, ...posting })

  test('gets work up to its capacity, each with a token to speak about it', async () => {
    const server = new Server()
    server.work = [envelope, { ...envelope, ...dispatched('revenue') }, { ...envelope, ...dispatched('rates') }]
    const { status, body } = await ask(server, { capacity: 2, queues: ['gpu'] })
    const dispatches = body['dispatches'] as DispatchEnvelope[]
    expect(status).toBe(200)
    expect(dispatches.map(({ task_key }) => task_key)).toEqual(['orders', 'revenue'])
    expect(dispatches[0]).toMatchObject({ callback_base_url: 'https://servo.example', token_expires_at: expect.any(String) })
    expect(server.heard).toEqual([['takeWork', { worker_id: 'w1', capacity: 2, queues: ['gpu'] }]])
    const started = await server.about('started', { worker_id: 'w1' }, { token: dispatches[0]?.task_token ?? '' })
    expect(started.status).toBe(200)
  })

  test('is answered at once when it does not want to wait, and after its patience otherwise', async () => {
    const server = new Server()
    expect((await ask(server, { capacity: 1 })).body).toEqual({ dispatches: [] })
    let answered = false
    const waiting = ask(server, { capacity: 1, wait_ms: 20 * SECOND_MS }).finally(() => {
      answered = true
    })
    await server.clock.advance(20 * SECOND_MS - 1)
    expect(answered).toBe(false)
    await server.clock.advance(1)
    expect((await waiting).body).toEqual({ dispatches: [] })
    expect(server.listeners.size).toBe(0)
  })

  test('gets work as soon as there is some; news about work of others lets it wait on', async () => {
    const server = new Server()
    const waiting = ask(server, { capacity: 1, wait_ms: 30 * SECOND_MS })
    await server.clock.advance(SECOND_MS)
    for (const call of server.listeners) call()
    await server.clock.advance(SECOND_MS)
    expect(server.heard).toHaveLength(2)
    server.work = [envelope]
    for (const call of server.listeners) call()
    expect((await waiting).body['dispatches']).toHaveLength(1)
    expect(server.listeners.size).toBe(0)
  })

  test('that hangs up is not given work that nobody would do', async () => {
    const server = new Server()
    const hangUp = new AbortController()
    const waiting = ask(server, { capacity: 1, wait_ms: 30 * SECOND_MS }, { signal: hangUp.signal })
    await server.clock.advance(SECOND_MS)
    hangUp.abort()
    await waiting
    server.work = [envelope]
    for (const call of server.listeners) call()
    expect(server.work).toHaveLength(1)
    expect(server.listeners.size).toBe(0)
  })

  test.each<[string, object, Posting, number, string]>([
    ['an unknown token', { capacity: 1 }, { token: 'stolen' }, 401, 'unauthenticated'],
    ['no room', { capacity: 0 }, {}, 400, 'bad_body'],
    ['no end of patience', { capacity: 1, wait_ms: 30_001 }, {}, 400, 'bad_body'],
    ['no queue', { capacity: 1, queues: [] }, {}, 400, 'bad_body'],
    ['a misspelt field', { capacity: 1, queue: 'gpu' }, {}, 400, 'bad_body'],
  ])('is refused with %s', async (_, body, posting, status, code) => {
    const server = new Server()
    expect(await ask(server, body, posting)).toMatchObject({ status, body: { code } })
    expect(server.heard).toEqual([])
  })
})
