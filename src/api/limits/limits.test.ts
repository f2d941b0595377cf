import { EventEmitter } from 'node:events'
import { beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { ServerLimits } from '../../contract/server-settings.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { unauthenticated } from '../access/access.ts'
import { noteClient } from '../access/client.ts'
import { textAnswer } from '../routing/answer.ts'
import { BASE, openRoute, route } from '../routing/route.ts'
import { addRoutes, emptyRouter } from '../routing/router.ts'
import { tokenAccess } from '../tokens/token-access.ts'
import { Buckets } from './buckets.ts'
import { RequestLimits } from './limits.ts'

let clock: VirtualClock
let limits: RequestLimits
let open: PromiseWithResolvers<void>[]
let asked: number
beforeEach(() => {
  clock = new VirtualClock()
  limits = new RequestLimits(clock)
  open = []
  asked = 0
})

const names = ['ana', 'ben']
/** Everybody whose token is their name. */
const access = tokenAccess('machine', {
  bearer: async (token) => {
    asked += 1
    if (!names.includes(token)) throw unauthenticated('unknown token')
    return { name: token, role: 'viewer', credential: { kind: 'token', id: token } }
  },
})

const described = { method: 'GET' as const, operation: 'ask', summary: 'Answers.', answer: z.object({}) }

function serve(set: ServerLimits = {}) {
  limits.use(set)
  const app = emptyRouter()
  app.use(noteClient(() => undefined))
  const wait = async (): Promise<Record<string, never>> => {
    const waiting = Promise.withResolvers<void>()
    open.push(waiting)
    await waiting.promise
    return {}
  }
  const stream = (): Response =>
    new Response(new ReadableStream({ cancel: () => void open.push(Promise.withResolvers()) }), {
      headers: { 'content-type': 'application/x-ndjson' },
    })
  addRoutes(
    app,
    [
      route({ ...described, path: `${BASE}/quick`, needs: 'viewer', handle: () => ({}) }),
      route({ ...described, path: `${BASE}/slow`, needs: 'viewer', handle: wait }),
      route({ ...described, path: `${BASE}/claim`, needs: 'viewer', waits: true, handle: wait }),
      route({
        ...described,
        path: `${BASE}/stream`,
        needs: 'viewer',
        answer: textAnswer('application/x-ndjson'),
        handle: stream,
      }),
      openRoute({ ...described, path: '/health/live', handle: () => ({}) }),
      openRoute({ ...described, path: `${BASE}/open`, handle: () => ({}) }),
    ],
    { access, limits },
  )
  const ask = async (path: string, token?: string, from = '10.0.0.1', outgoing = new EventEmitter()) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const request = new Request(`http://localhost${path.startsWith('/h') ? path : BASE + path}`, { headers })
    const response = await app.fetch(request, { incoming: { socket: { remoteAddress: from } }, outgoing })
    const problem = (response.status >= 400 ? await response.json() : {}) as { code?: string }
    return { status: response.status, code: problem.code, retryAfter: response.headers.get('retry-after') }
  }
  return ask
}

describe('[U10] how often somebody may ask', () => {
  test('is limited for each caller by itself, and twice as much at once', async () => {
    const ask = serve({ requests_per_second: 5 })
    for (let i = 0; i < 10; i++) expect((await ask('/quick', 'ana')).status).toBe(200)
    expect(await ask('/quick', 'ana')).toEqual({ status: 429, code: 'too_many_requests', retryAfter: '1' })
    expect((await ask('/quick', 'ben')).status).toBe(200)
    await clock.advance(1_000)
    for (let i = 0; i < 5; i++) expect((await ask('/quick', 'ana')).status).toBe(200)
    expect((await ask('/quick', 'ana')).status).toBe(429)
  })

  test('is limited for strangers of an address, whose tokens are then not even looked at; known callers go on', async () => {
    const ask = serve({ refused_per_second: 5 })
    await ask('/quick', 'ana')
    for (let i = 0; i < 10; i++) expect((await ask('/quick', `guess-${i}`)).status).toBe(401)
    const before = asked
    expect(await ask('/quick', 'guess')).toMatchObject({ status: 429, retryAfter: '1' })
    expect((await ask('/quick')).status).toBe(429)
    expect(asked).toBe(before)
    expect((await ask('/quick', 'ana')).status).toBe(200)
    expect((await ask('/quick', 'guess', '10.0.0.2')).status).toBe(401)
    await clock.advance(1_000)
    expect((await ask('/quick', 'guess')).status).toBe(401)
  })

  test('counts what anybody may ask with what strangers ask', async () => {
    const ask = serve({ refused_per_second: 2 })
    for (let i = 0; i < 4; i++) expect((await ask('/open')).status).toBe(200)
    expect((await ask('/open')).status).toBe(429)
    expect((await ask('/open', undefined, '10.0.0.2')).status).toBe(200)
    // Whether the server is alive must be answered, or a balancer would take it away because of a stranger.
    expect((await ask('/health/live')).status).toBe(200)
  })

  test('is counted for a network of IPv6, of which one machine has all addresses', async () => {
    const ask = serve({ refused_per_second: 1 })
    for (const last of ['1', '2']) expect((await ask('/quick', 'x', `2001:db8:1:2::${last}`)).status).toBe(401)
    expect((await ask('/quick', 'x', '2001:db8:1:2::3')).status).toBe(429)
    expect((await ask('/quick', 'x', '2001:db8:1:3::1')).status).toBe(401)
  })
})

describe('[U10] how much is under way', () => {
  test('requests beyond the limit are refused at once, and there is room when others end', async () => {
    const ask = serve({ requests_in_flight: 3 })
    const waiting = Array.from({ length: 3 }, () => ask('/slow', 'ana'))
    await clock.advance(1)
    expect(await ask('/quick', 'ana')).toEqual({ status: 503, code: 'too_busy', retryAfter: '1' })
    expect((await ask('/health/live')).status).toBe(200)
    for (const each of open) each.resolve()
    await Promise.all(waiting)
    expect((await ask('/quick', 'ana')).status).toBe(200)
    expect(limits.now).toEqual({ requests: 0, streams: 0 })
  })

  test('streams count until their connection is closed, and with them who waits for work', async () => {
    const ask = serve({ streams: 2, requests_in_flight: 1 })
    const connection = new EventEmitter()
    expect((await ask('/stream', 'ana', '10.0.0.1', connection)).status).toBe(200)
    const claim = ask('/claim', 'ana')
    await clock.advance(1)
    expect(limits.now).toEqual({ requests: 0, streams: 2 })
    expect(await ask('/stream', 'ana')).toMatchObject({ status: 503, code: 'too_busy' })
    // The stream that was refused is told to end.
    expect(open).toHaveLength(2)
    connection.emit('close')
    expect((await ask('/stream', 'ana')).status).toBe(200)
    open[0]?.resolve()
    await claim
    expect(limits.now).toEqual({ requests: 0, streams: 1 })
  })
})

test('[U10] buckets are forgotten rather than kept without end', () => {
  const buckets = new Buckets({ perSecond: 1, burst: 1 })
  for (let i = 0; i <= 10_000; i++) expect(buckets.take(`a${i}`, 0)).toBe(0)
  // The first was forgotten, the last was not.
  expect([buckets.take('a0', 0), buckets.take('a10000', 0)]).toEqual([0, 1_000])
})
