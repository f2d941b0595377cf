import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { HookBench } from '../../testing/hook-bench.ts'

/** From the tests of the libraries of Standard Webhooks. */
const published = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: 1_614_265_330,
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}
const json = { 'content-type': 'application/json' }
const headers = {
  ...json,
  'webhook-id': published.id,
  'webhook-timestamp': String(published.timestamp),
  'webhook-signature': published.signature,
}

function standard(environment: Record<string, string> = { NEW: published.secret }): HookBench {
  const bench = new HookBench().define({ type: 'webhook', path: 'orders', verify: 'standard', secrets: ['NEW', 'OLD'] })
  bench.environment = environment
  return bench
}

describe('[A46] a webhook with verify: standard', () => {
  test('takes the published example, under the id that it signs', async () => {
    const bench = standard()
    expect(await bench.send(headers, published.body)).toMatchObject({
      status: 200,
      answer: { message_id: published.id, eval_id: 'e1', run_ids: ['r1'], repeated: false },
    })
    expect(bench.delivered).toMatchObject([
      {
        sensor_id: 'inbox',
        message: { id: published.id, data: { test: 2_432_232_314 }, published_at: '2021-02-25T15:02:10.000Z' },
        body_size: published.body.length,
      },
    ])
  })

  test.each([
    ['without the prefix, as base64', published.secret.slice('whsec_'.length)],
    ['the old one of two, while it is rotated', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx', published.secret],
  ])('takes a secret %s', async (_, first, second = '') => {
    expect((await standard({ NEW: first, OLD: second }).send(headers, published.body)).status).toBe(200)
  })

  test('takes a secret that is any text', async () => {
    const sign = createHmac('sha256', 'correct horse').update(`m1.${published.timestamp}.{}`).digest('base64')
    const own = { ...headers, 'webhook-id': 'm1', 'webhook-signature': `v1,${sign}` }
    expect((await standard({ NEW: 'correct horse' }).send(own, '{}')).status).toBe(200)
  })

  test.each([
    ['one of several', `v1,AAAA v1a,BBBB ${published.signature}`],
    ['one of two headers, which HTTP joins', `v1,AAAA, ${published.signature}`],
  ])('takes %s', async (_, signature) => {
    expect((await standard().send({ ...headers, 'webhook-signature': signature }, published.body)).status).toBe(200)
  })

  test.each([
    ['another body', headers, '{"test": 2432232315}'],
    ['another id', { ...headers, 'webhook-id': 'msg_other' }],
    ['another timestamp', { ...headers, 'webhook-timestamp': '1614265331' }],
    ['no id', { ...headers, 'webhook-id': '' }],
    ['no signature', { ...headers, 'webhook-signature': '' }],
    ['a signature of another version', { ...headers, 'webhook-signature': published.signature.replace('v1', 'v2') }],
    ['a signature without a version', { ...headers, 'webhook-signature': published.signature.slice(3) }],
    ['an invalid timestamp', { ...headers, 'webhook-timestamp': '1614265330.5' }],
    ['nothing at all', json],
  ])('refuses %s', async (_, given, body = published.body) => {
    const bench = standard()
    const { status, answer } = await bench.send(given, body)
    expect([status, bench.delivered, bench.hooks.refusals('inbox')]).toEqual([401, [], { bad_signature: 1 }])
    expect(JSON.stringify(answer)).not.toMatch(/g0hM9|MfKQ9|2432232314/)
  })

  test.each([
    ['whsec_ without anything after it, which would make a key that all know', 'whsec_'],
    ['whsec_ and no base64', 'whsec_!!!'],
    ['an empty variable', ''],
  ])('is not ready with %s', async (_, secret) => {
    const bench = standard({ NEW: secret })
    const sign = createHmac('sha256', '').update(`m1.${published.timestamp}.{}`).digest('base64')
    const own = { ...headers, 'webhook-id': 'm1', 'webhook-signature': `v1,${sign}` }
    expect([(await bench.send(own, '{}')).status, bench.delivered]).toEqual([503, []])
    expect(bench.troubles.map(String)).toEqual([expect.stringContaining('NEW')])
  })

  test.each([
    [5 * 60, 200],
    [-5 * 60, 200],
    [5 * 60 + 1, 401],
    [-5 * 60 - 1, 401],
  ])('[A47] answers a request of %i seconds ago with %i', async (seconds, status) => {
    const bench = standard()
    bench.clock.jump(seconds * 1_000)
    const { answer, ...response } = await bench.send(headers, published.body)
    expect([response.status, bench.delivered.length]).toEqual([status, status === 200 ? 1 : 0])
    if (status === 401) {
      expect(answer).toMatchObject({ code: 'old_timestamp', detail: expect.stringContaining('301 seconds') })
      expect(bench.hooks.refusals('inbox')).toEqual({ old_timestamp: 1 })
    }
  })

  test('[A47] keeps the signed id although headers that are not signed name another', async () => {
    const bench = standard()
    const event = { 'ce-specversion': '1.0', 'ce-id': 'other', 'ce-source': '/x', 'ce-type': 't', 'idempotency-key': 'another' }
    await bench.send({ ...headers, ...event }, published.body)
    expect(bench.delivered).toMatchObject([{ message: { id: published.id, attributes: { type: 't', id: 'other' } } }])
  })
})

/** From the documentation of GitHub. */
const github = {
  secret: "It's a Secret to Everybody",
  body: 'Hello, World!',
  signature: 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
}

describe('[A46] a webhook with verify: github', () => {
  const open = () => {
    const bench = new HookBench().define({ type: 'webhook', path: 'orders', verify: 'github', secrets: ['NEW', 'OLD'] })
    bench.environment = { NEW: 'another', OLD: github.secret }
    return bench
  }
  const own = {
    'content-type': 'text/plain',
    'x-hub-signature-256': github.signature,
    'x-github-delivery': 'd1',
    'x-github-event': 'push',
  }

  test('takes the published example, under the id of the delivery and with the name of the event', async () => {
    const bench = open()
    expect((await bench.send(own, github.body)).status).toBe(200)
    expect(bench.delivered).toMatchObject([{ message: { id: 'd1', data: 'Hello, World!', attributes: { event: 'push' } } }])
  })

  test('takes JSON in a form, as GitHub sends it if told so', async () => {
    const bench = open()
    const body = new URLSearchParams({ payload: '{"ref":"main"}' }).toString()
    const signature = `sha256=${createHmac('sha256', github.secret).update(body).digest('hex')}`
    const form = { ...own, 'content-type': 'application/x-www-form-urlencoded', 'x-hub-signature-256': signature }
    expect((await bench.send(form, body)).status).toBe(200)
    expect(bench.delivered).toMatchObject([{ message: { data: { ref: 'main' } } }])
  })

  test.each([
    ['another body', own, 'Hello, World?'],
    ['no signature', { ...own, 'x-hub-signature-256': '' }],
    [
      'the older signature by SHA-1',
      { 'content-type': 'text/plain', 'x-hub-signature': 'sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59' },
    ],
    ['a signature in capitals', { ...own, 'x-hub-signature-256': github.signature.toUpperCase() }],
  ])('refuses %s', async (_, given, body = github.body) => {
    const bench = open()
    expect([(await bench.send(given, body)).status, bench.delivered]).toEqual([401, []])
  })
})

describe('[A46] a webhook with verify: token', () => {
  const open = () => {
    const bench = new HookBench().define({ type: 'webhook', path: 'orders', verify: 'token', secrets: ['NEW', 'OLD'] })
    bench.environment = { NEW: 'new-token', OLD: 'old-token' }
    return bench
  }

  test.each([{ authorization: 'Bearer new-token' }, { authorization: 'bearer old-token' }, { 'x-servo-token': 'old-token' }])(
    'takes %o',
    async (given) => {
      const bench = open()
      expect([(await bench.send({ ...json, ...given }, '{}')).status, bench.delivered.length]).toEqual([200, 1])
    },
  )

  test.each([
    {},
    { authorization: 'Bearer new-toke' },
    { authorization: 'Bearer ' },
    { authorization: 'Basic new-token' },
    { authorization: 'Bearer guess, Bearer new-token' },
    { 'x-servo-token': '' },
    // The token of the server opens everything else, but is no secret of the sensor.
    { authorization: 'Bearer secret' },
  ])('refuses %o', async (given) => {
    const bench = open()
    const { status } = await bench.send({ ...json, ...given }, '{}')
    expect([status, bench.delivered, bench.hooks.refusals('inbox')]).toEqual([401, [], { bad_token: 1 }])
  })
})

describe('a webhook with verify: none', () => {
  const open = () => new HookBench().define({ type: 'webhook', path: 'orders', verify: 'none' })

  test.each([{}, { origin: 'eventemitter.example.com' }, { 'sec-fetch-site': 'none' }])(
    'takes what a program sends, %o',
    async (given) => {
      expect((await open().send({ ...json, ...given }, '{}')).status).toBe(200)
    },
  )

  test.each([
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])('refuses what a page makes a browser send, %o', async (given) => {
    const bench = open()
    expect([(await bench.send({ 'content-type': 'text/plain', ...given }, 'x')).status, bench.delivered]).toEqual([403, []])
  })
})
