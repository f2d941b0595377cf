import { createServer } from 'node:http'
import {
  exportJWK,
  exportSPKI,
  type GenerateKeyPairResult,
  generateKeyPair,
  type JWTPayload,
  SignJWT,
  UnsecuredJWT,
} from 'jose'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { HookBench } from '../../testing/hook-bench.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { googleKeys } from './google-keys.ts'

const PATH = '/pubsub/acme/analytics/inbox'
const ACCOUNT = 'pusher@shop.iam.gserviceaccount.com'
const wrapped = {
  message: {
    data: Buffer.from('{"order":7}').toString('base64'),
    attributes: { origin: 'shop' },
    messageId: '136969346945',
    publishTime: '2021-02-25T15:00:00.123Z',
  },
  subscription: 'projects/shop/subscriptions/late',
}

let google: GenerateKeyPairResult
let stranger: GenerateKeyPairResult
let elliptic: GenerateKeyPairResult
beforeAll(async () => {
  google = await generateKeyPair('RS256', { extractable: true })
  stranger = await generateKeyPair('RS256', { extractable: true })
  elliptic = await generateKeyPair('ES256', { extractable: true })
})

/** Google's address of keys, on a port of this machine. */
async function certs(settings: { status?: number; kid?: string; cacheControl?: string } = {}) {
  const state = { status: 200, kid: 'k1', cacheControl: 'public, max-age=3600', ...settings, asked: 0 }
  const server = createServer(async (_, response) => {
    state.asked += 1
    const jwk = { ...(await exportJWK(google.publicKey)), kid: state.kid, use: 'sig', alg: 'RS256' }
    const other = { ...(await exportJWK(elliptic.publicKey)), kid: 'ec', use: 'sig', alg: 'ES256' }
    response.writeHead(state.status, { 'content-type': 'application/json', 'cache-control': state.cacheControl })
    response.end(JSON.stringify({ keys: [other, jwk] }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return Object.assign(state, { url: `http://127.0.0.1:${port}/certs` })
}

async function open(
  settings: { audience?: string | null; service_account?: string; certs?: Awaited<ReturnType<typeof certs>> } = {},
) {
  const { audience = 'orders', certs: from = await certs(), ...config } = settings
  const keys = googleKeys({
    clock: { now: () => bench.clock.now() },
    url: from.url,
    onTrouble: (error) => bench.troubles.push(error),
  })
  const bench: HookBench = new HookBench(keys).define({
    type: 'pubsub',
    topic: 'projects/shop/topics/late',
    audience,
    ...config,
  })
  return bench
}

const claims = (bench: HookBench, changes: Record<string, unknown> = {}): JWTPayload => {
  const iat = Math.floor(bench.clock.now() / 1_000)
  return {
    iss: 'https://accounts.google.com',
    aud: 'orders',
    iat,
    exp: iat + 3_600,
    email: ACCOUNT,
    email_verified: true,
    ...changes,
  }
}

const signed = (payload: JWTPayload, { key = google.privateKey, alg = 'RS256', kid = 'k1' } = {}) =>
  new SignJWT(payload).setProtectedHeader({ alg, kid, typ: 'JWT' }).sign(key)

const push = (bench: HookBench, token: string, body: unknown = wrapped, headers: Record<string, string> = {}) =>
  bench.send({ 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers }, JSON.stringify(body), PATH)

describe('[A49] a push of Pub/Sub', () => {
  test('is delivered with its data, its attributes and when it was published', async () => {
    const bench = await open({ service_account: ACCOUNT })
    expect((await push(bench, await signed(claims(bench)))).status).toBe(200)
    expect(bench.delivered).toMatchObject([
      {
        body_size: 11,
        message: {
          id: '136969346945',
          data: { order: 7 },
          attributes: { origin: 'shop', topic: 'projects/shop/topics/late', subscription: 'projects/shop/subscriptions/late' },
          published_at: '2021-02-25T15:00:00.123Z',
        },
      },
    ])
  })

  test('has the same hash when it is delivered again, although what is around it differs', async () => {
    const bench = await open()
    await push(bench, await signed(claims(bench)))
    await push(bench, await signed(claims(bench)), { ...wrapped, deliveryAttempt: 2 })
    const [first, second] = bench.delivered.map(({ body_hash }) => body_hash)
    expect(second).toBe(first)
  })

  test('may be unwrapped, with its attributes in headers', async () => {
    const bench = await open()
    const metadata = {
      'x-goog-pubsub-message-id': '8',
      'x-goog-pubsub-publish-time': '2021-02-25T15:00:00Z',
      'x-goog-pubsub-subscription-name': 's',
      region: 'eu',
    }
    await push(bench, await signed(claims(bench)), { order: 8 }, metadata)
    const attributes = { region: 'eu', topic: 'projects/shop/topics/late', subscription: 's' }
    expect(bench.delivered.map(({ message }) => message)).toEqual([
      { id: '8', data: { order: 8 }, attributes, published_at: '2021-02-25T15:00:00.000Z' },
    ])
  })

  test.each([
    ['text', 'a b', 'a b'],
    ['bytes', Uint8Array.of(0xff), '/w=='],
    ['nothing', '', null],
  ])('may have as data %s', async (_, data, expected) => {
    const bench = await open()
    const message = { ...wrapped.message, data: Buffer.from(data).toString('base64') }
    await push(bench, await signed(claims(bench)), { ...wrapped, message })
    expect(bench.delivered).toMatchObject([{ message: { data: expected } }])
  })

  test('is meant for the address of the sensor, by name or id, unless the sensor names an audience; for the host that it names never', async () => {
    const bench = await open({ audience: null })
    bench.environment = { SERVO_PUBLIC_URL: 'https://servo.example/' }
    for (const [aud, status] of [
      ['https://servo.example/pubsub/acme/analytics/the%20inbox', 200],
      ['https://servo.example/pubsub/acme/analytics/inbox', 200],
      [`https://hooks.example${PATH}`, 401],
      ['orders', 401],
    ] as const)
      expect([aud, (await push(bench, await signed(claims(bench, { aud })))).status]).toEqual([aud, status])
  })

  test.each<[string, Record<string, unknown>, number, string]>([
    ['is meant for another audience', { aud: 'others' }, 401, 'wrong_audience'],
    ['is meant for nobody', { aud: undefined }, 401, 'wrong_audience'],
    ['comes from another issuer', { iss: 'https://accounts.example' }, 401, 'bad_token'],
    ['never expires', { exp: undefined }, 401, 'bad_token'],
    ['comes from another account', { email: 'other@shop.iam.gserviceaccount.com' }, 403, 'wrong_service_account'],
    ['comes from an account that is not verified', { email_verified: false }, 403, 'wrong_service_account'],
    ['comes from no account', { email: undefined }, 403, 'wrong_service_account'],
  ])('is refused if its token %s', async (_, changes, status, code) => {
    const bench = await open({ service_account: ACCOUNT })
    const { status: given, answer } = await push(bench, await signed(claims(bench, changes)))
    expect([given, answer, bench.delivered]).toEqual([status, expect.objectContaining({ code }), []])
    expect(bench.hooks.refusals('inbox')).toEqual({ [code]: 1 })
  })

  test('is refused if its token is forged', async () => {
    const bench = await open()
    const payload = claims(bench)
    const good = await signed(payload)
    const [head = '', body = '', signature = ''] = good.split('.')
    const publicText = Buffer.from(await exportSPKI(google.publicKey))
    const hmac = new SignJWT(payload).setProtectedHeader({ alg: 'HS256', kid: 'k1' }).sign(publicText)
    const forged = [
      await signed(payload, { key: stranger.privateKey }),
      await signed(payload, { kid: 'unknown' }),
      await signed(payload, { key: elliptic.privateKey, alg: 'ES256', kid: 'ec' }),
      await signed(payload, { key: elliptic.privateKey, alg: 'ES256' }),
      await hmac,
      new UnsecuredJWT(payload).encode(),
      `${head}.${body}.`,
      `${head}.${Buffer.from(JSON.stringify({ ...payload, email: 'x' })).toString('base64url')}.${signature}`,
      `${good}x`,
      'x'.repeat(5_000),
      'a.b.c',
    ]
    for (const token of forged)
      expect([token, await push(bench, token)]).toMatchObject([token, { status: 401, answer: { code: 'bad_token' } }])
    expect([bench.delivered, bench.hooks.refusals('inbox')]).toEqual([[], { bad_token: forged.length }])
    expect((await bench.send({ 'content-type': 'application/json' }, '{}', PATH)).status).toBe(401)
  })

  test.each([
    [3_659, 200],
    [3_661, 401],
    [-59, 200],
    [-61, 401],
  ])('with a token of %i seconds ago is answered with %i', async (seconds, status) => {
    const bench = await open()
    const token = await signed(claims(bench))
    bench.clock.jump(seconds * 1_000)
    expect([(await push(bench, token)).status, bench.delivered.length]).toEqual([status, status === 200 ? 1 : 0])
  })

  test.each<[string, unknown, Record<string, string>, number]>([
    ['has no message', { subscription: 's' }, {}, 400],
    ['has no id', { message: { data: '' } }, {}, 400],
    ['is compressed', wrapped, { 'content-encoding': 'gzip' }, 415],
    ['is larger than 1 MiB', { ...wrapped, more: 'x'.repeat(2 ** 20) }, {}, 413],
  ])('is refused if it %s', async (_, body, headers, status) => {
    const bench = await open()
    const token = await signed(claims(bench))
    expect([(await push(bench, token, body, headers)).status, bench.delivered]).toEqual([status, []])
    expect(Object.values(bench.hooks.refusals('inbox'))).toEqual([1])
  })
})

describe("[A50] Google's keys", () => {
  test('are fetched once for all who wait, and kept as long as Google says', async () => {
    const from = await certs()
    const bench = await open({ certs: from })
    const token = await signed(claims(bench))
    const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await push(bench, token)).status))
    expect([new Set(statuses), from.asked]).toEqual([new Set([200]), 1])
    bench.clock.jump(3_599_000)
    await push(bench, token)
    expect(from.asked).toBe(1)
    bench.clock.jump(1_000)
    await push(bench, token)
    expect(from.asked).toBe(2)
  })

  test('are fetched again for an unknown one, at most once a minute', async () => {
    const from = await certs()
    const bench = await open({ certs: from })
    await push(bench, await signed(claims(bench)))
    from.kid = 'k2'
    const token = await signed(claims(bench), { kid: 'k2' })
    for (const _ of [1, 2, 3]) expect((await push(bench, token)).status).toBe(401)
    expect(from.asked).toBe(1)
    bench.clock.jump(60_000)
    expect([(await push(bench, token)).status, from.asked]).toEqual([200, 2])
  })

  test('that cannot be fetched make pushes come again, and the owner is told', async () => {
    const from = await certs({ status: 500 })
    const bench = await open({ certs: from })
    const token = await signed(claims(bench))
    for (const _ of [1, 2])
      expect(await push(bench, token)).toMatchObject({ status: 503, answer: { code: 'keys_unreachable' } })
    expect([from.asked, bench.troubles.map(String)]).toEqual([1, [expect.stringContaining('500')]])
    from.status = 200
    bench.clock.jump(5_000)
    expect([(await push(bench, token)).status, bench.delivered.length]).toEqual([200, 1])
  })

  test('count for a day longer while they cannot be fetched anew', async () => {
    const from = await certs()
    const clock = new VirtualClock()
    const keys = googleKeys({ clock, url: from.url })
    await keys.keyOf('k1')
    from.status = 503
    clock.jump(3_600_000 + 86_400_000)
    expect(await keys.keyOf('k1')).toBeDefined()
    await expect(keys.keyOf('k9')).rejects.toMatchObject({ code: 'keys_unreachable' })
    clock.jump(10_000)
    await expect(keys.keyOf('k1')).rejects.toMatchObject({ code: 'keys_unreachable' })
  })
})
