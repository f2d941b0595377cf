import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DeliveryAnswer } from '../../contract/delivery.ts'
import { ServoError } from '../../lib/error.ts'
import { HookBench } from '../../testing/hook-bench.ts'
import { refusalReasons } from './refusals.ts'

const json = { 'content-type': 'application/json' }
const token = { ...json, authorization: 'Bearer right' }

function open(verify: 'none' | 'token' = 'none', id = 'inbox'): HookBench {
  const bench = new HookBench().define({ type: 'webhook', path: 'orders', verify, secrets: ['SHOP_TOKEN'] }, id)
  bench.environment = { SHOP_TOKEN: 'right' }
  return bench
}

const method = async (
  bench: HookBench,
  name: string,
  headers: Record<string, string> = {},
  path = '/hooks/acme/analytics/orders',
) => await bench.app.fetch(new Request(`https://hooks.example${path}`, { method: name, headers }))

describe('[A48] the body of a message', () => {
  test.each<[string, Record<string, string>, string, unknown]>([
    ['JSON', json, '{"a":[1,null]}', { a: [1, null] }],
    ['JSON of another name', { 'content-type': 'application/vnd.shop+json; charset=UTF-8' }, '7', 7],
    ['text', { 'content-type': 'text/csv' }, 'a,b\n1,2', 'a,b\n1,2'],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 'a=1&b=x+y&a=2', { a: ['1', '2'], b: 'x y' }],
    ['nothing', {}, '', null],
    ['nothing, of a type', json, '', null],
  ])('may be %s', async (_, headers, body, data) => {
    const bench = open()
    expect((await bench.send(headers, body)).status).toBe(200)
    expect(bench.delivered).toMatchObject([{ message: { data }, body_size: Buffer.byteLength(body) }])
  })

  test.each<[string, Record<string, string>, string | Uint8Array<ArrayBuffer>, number]>([
    ['of no declared type', {}, 'x', 415],
    ['of bytes', { 'content-type': 'application/octet-stream' }, 'x', 415],
    ['of many parts', { 'content-type': 'multipart/form-data; boundary=x' }, 'x', 415],
    ['in Latin-1', { 'content-type': 'text/plain; charset=latin1' }, 'x', 415],
    ['compressed', { ...json, 'content-encoding': 'gzip' }, '{}', 415],
    ['a batch of CloudEvents', { 'content-type': 'application/cloudevents-batch+json' }, '[]', 415],
    ['a batch of CloudEvents that is empty', { 'content-type': 'application/cloudevents-batch+json' }, '', 415],
    ['JSON that is none', json, '{"a":', 400],
    ['JSON that is not UTF-8', json, Uint8Array.of(0x22, 0xff, 0x22), 400],
    ['text that is not UTF-8', { 'content-type': 'text/plain' }, Uint8Array.of(0xc3, 0x28), 400],
    ['JSON that is nested without end', json, '['.repeat(100_000), 400],
    ['JSON that is too deep', json, '['.repeat(40) + ']'.repeat(40), 400],
    ['a key that changes other objects', json, '{"__proto__":{"a":1}}', 400],
    ['larger than 1 MiB', { 'content-type': 'text/plain' }, 'x'.repeat(2 ** 20 + 1), 413],
    ['of 10 MB', { 'content-type': 'text/plain' }, 'x'.repeat(10_000_000), 413],
    ['an empty CloudEvent', { 'content-type': 'application/cloudevents+json' }, '', 400],
  ])('is refused if it is %s', async (_, headers, body, status) => {
    const bench = open()
    const { status: given, answer } = await bench.send(headers, body)
    expect([given, bench.delivered]).toEqual([status, []])
    expect(answer).toMatchObject({ code: expect.any(String), hint: expect.any(String) })
    expect(Object.values(bench.hooks.refusals('inbox'))).toEqual([1])
  })

  test('is understood only after the sender was verified', async () => {
    const bench = open('token')
    expect((await bench.send({ ...json, authorization: 'Bearer wrong' }, '{"a":')).status).toBe(401)
    expect((await bench.send({ 'content-type': 'image/png' }, 'x')).status).toBe(401)
  })
})

describe('[A48] a CloudEvent', () => {
  const structured = { 'content-type': 'application/cloudevents+json' }
  const event = { specversion: '1.0', id: '7', source: '/shop', type: 'order.placed', time: '2021-02-25T16:02:10+01:00' }
  const binary = { ...json, 'ce-specversion': '1.0', 'ce-id': '7', 'ce-source': '/shop', 'ce-type': 'order.placed' }

  test('has the same id and data in both forms', async () => {
    const bench = open('token')
    const more = { subject: 'caf\u00e9', region: 'eu', count: 3 }
    await bench.send({ ...token, ...structured }, JSON.stringify({ ...event, ...more, data: { order: 7 } }))
    const extensions = { 'ce-subject': 'caf%C3%A9', 'ce-region': 'eu', 'ce-count': '3', 'ce-time': event.time }
    await bench.send({ ...token, ...binary, ...extensions }, '{"order":7}')
    const attributes = {
      id: '7',
      source: '/shop',
      type: 'order.placed',
      subject: 'café',
      region: 'eu',
      count: '3',
      time: event.time,
    }
    const message = { id: '/shop 7', data: { order: 7 }, published_at: '2021-02-25T15:02:10.000Z' }
    expect(bench.delivered.map((each) => each.message)).toEqual([
      { ...message, attributes },
      { ...message, attributes: { ...attributes, datacontenttype: 'application/json' } },
    ])
  })

  test.each<[string, object, unknown]>([
    ['JSON as base64', { data_base64: Buffer.from('{"a":1}').toString('base64') }, { a: 1 }],
    ['text as base64', { data_base64: Buffer.from('a b').toString('base64') }, 'a b'],
    ['bytes as base64', { data_base64: '/w==' }, '/w=='],
    ['none', {}, null],
  ])('may have as data %s', async (_, data, expected) => {
    const bench = open()
    await bench.send(structured, JSON.stringify({ ...event, ...data }))
    expect(bench.delivered).toMatchObject([{ message: { data: expected } }])
  })

  test('is another if its source is another', async () => {
    const bench = open()
    for (const [source, id] of [
      ['/a b', 'c'],
      ['/a', 'b c'],
      ['/a', 'c'],
    ])
      await bench.send(structured, JSON.stringify({ ...event, source, id }))
    expect(bench.delivered.map(({ message }) => message.id)).toEqual(['/a%20b c', '/a b c', '/a c'])
  })

  test.each<[string, Record<string, string>, string]>([
    ['is a list', structured, '[]'],
    ['has no id', structured, JSON.stringify({ ...event, id: '' })],
    ['has no source', structured, JSON.stringify({ ...event, source: undefined })],
    ['has no type', { ...binary, 'ce-type': '' }, '{}'],
    ['is of another version', structured, JSON.stringify({ ...event, specversion: '0.3' })],
    ['has attributes with members', structured, JSON.stringify({ ...event, region: { a: 1 } })],
    ['has data twice', structured, JSON.stringify({ ...event, data: 1, data_base64: 'AA==' })],
    ['has an id in a header and nothing else', { ...json, 'ce-id': '7' }, '{}'],
  ])('is refused if it %s', async (_, headers, body) => {
    const bench = open()
    const { status, answer } = await bench.send(headers, body)
    expect([status, answer, bench.delivered]).toEqual([400, expect.objectContaining({ code: 'bad_event' }), []])
  })
})

describe('the id of a message', () => {
  test('is a new one for each request of a sender that gives none', async () => {
    const bench = open()
    for (const _ of [1, 2]) await bench.send(json, '{}')
    const [first, second] = bench.delivered.map(({ message }) => message.id)
    expect(first).toMatch(/^msg_[0-9A-Z]{26}$/)
    expect(second).not.toBe(first)
  })

  test.each([
    [{ 'idempotency-key': 'k1', 'x-message-id': 'm1' }, 'k1'],
    [{ 'x-message-id': 'm1' }, 'm1'],
  ])('is that of a header: %o', async (headers, id) => {
    const bench = open()
    await bench.send({ ...json, ...headers }, '{}')
    expect(bench.delivered[0]?.message.id).toBe(id)
  })
})

test('an id that no record takes is kept as its hash, always the same', async () => {
  const bench = open()
  for (const id of ['x'.repeat(300), 'x'.repeat(301), 'x'.repeat(300)]) await bench.send({ ...json, 'x-message-id': id }, '{}')
  const event = { specversion: '1.0', id: 'a\nb', source: '/s', type: 't' }
  await bench.send({ 'content-type': 'application/cloudevents+json' }, JSON.stringify(event))
  const [first, second, third, fourth] = bench.delivered.map(({ message }) => message.id)
  for (const id of [first, second, fourth]) expect(id).toMatch(/^sha256=[0-9a-f]{64}$/)
  expect([third, new Set([first, second, fourth]).size]).toEqual([first, 3])
})

describe('[A51] the answer to a sender', () => {
  const answered = async (answer: DeliveryAnswer) => {
    const bench = open()
    bench.answer = async () => answer
    return await bench.send(json, '{}')
  }

  test('is 200 for a message that was accepted before, and says so', async () => {
    const runs = [
      {
        run_id: 'run_1',
        run_key: 'sensor:a:key:k',
        key: 'k',
        created: false,
        conflict: false,
        requested_at: '2025-01-15T10:00:00.000Z',
      },
    ] as const
    const said = { message_id: 'm', eval_id: 'e', run_ids: ['run_1'], runs, repeated: true, conflict: true } as const
    const accepted = { kind: 'accepted', ...said } as const
    const { status, answer } = await answered(accepted)
    expect([status, answer]).toEqual([200, said])
  })

  test('is 200 for a dead letter', async () => {
    const { status, answer } = await answered({ kind: 'dead', message_id: 'm', error: 'secret text' })
    expect([status, answer]).toEqual([200, { message_id: 'm', dead: true }])
  })

  test('is 500 with the id of the message and the tries if the sensor failed, without its error', async () => {
    const { status, answer } = await answered({ kind: 'failed', message_id: 'm', error: 'secret text', try: 2, max_tries: 5 })
    expect(status).toBe(500)
    expect(answer).toMatchObject({
      code: 'sensor_failed',
      message_id: 'm',
      try: 2,
      max_tries: 5,
      title: expect.not.stringContaining('Servo'),
    })
    expect(JSON.stringify(answer)).not.toContain('secret text')
  })

  test('is 422 with the field if the message does not fit, without what else is wrong with it', async () => {
    const unfit = { kind: 'failed', message_id: 'm', error: 'secret text', try: 1, max_tries: 5 } as const
    const { status, answer } = await answered({ ...unfit, unfit_field: 'order.id' })
    expect([status, answer]).toMatchObject([422, { code: 'unfit_message', field: 'order.id', message_id: 'm', try: 1 }])
    expect(JSON.stringify(answer)).not.toContain('secret text')
    expect(answer).toMatchObject({
      hint: expect.stringMatching(
        /^Fix the message: sent again unchanged, it will fail again unless the sensor changes\. `servo sensors evals` sho/,
      ),
    })
    const bench = open()
    bench.answer = async () => ({ ...unfit, unfit_field: 'order.id' })
    const form = await bench.send({ 'content-type': 'application/x-www-form-urlencoded' }, '{"order":1}')
    expect(form.answer).toMatchObject({
      hint: expect.stringMatching(/was read as a form.*`Content-Type: application\/json`/),
    })
    const whole = await answered({ ...unfit, unfit_field: '' })
    expect(whole).toMatchObject({ status: 422, answer: expect.not.objectContaining({ field: expect.anything() }) })
  })

  test.each(['disabled', 'paused', 'automation_paused', 'automation_off'] as const)(
    'is 503 while it stands still, and counted as refused: %s',
    async (code) => {
      const bench = open()
      bench.answer = async () => ({ kind: 'standstill', code, by: 'ana', reason: 'private' })
      const { status, headers, answer } = await bench.send(json, '{}')
      await bench.send(json, '{}')
      expect(bench.hooks.refusals('inbox')).toEqual({ [code]: 2 })
      expect([status, headers.get('retry-after')]).toEqual([503, '60'])
      expect(JSON.stringify(answer)).not.toMatch(/ana|private/)
    },
  )

  test('is 503 from a process that evaluates no sensors, and when nothing can be made durable', async () => {
    const bench = open()
    bench.answer = async () =>
      Promise.reject(new ServoError('unavailable', 'disk_full', 'cannot create x in /data: the disk is full'))
    const full = await bench.send(json, '{}')
    expect(full).toMatchObject({ status: 503, answer: { code: 'not_recorded' } })
    expect(JSON.stringify(full), 'strangers learn nothing of the machine').not.toContain('/data')
    bench.isEvaluating = false
    expect(await bench.send(json, '{}')).toMatchObject({ status: 503, answer: { code: 'automation_off' } })
    expect(bench.hooks.refusals('inbox')).toEqual({ automation_off: 1 })
  })

  test('is 503 without the secret, and the owner is told the name of the variable once a minute', async () => {
    const bench = open('token')
    bench.environment = {}
    for (const _ of [1, 2])
      expect(await bench.send(token, '{}')).toMatchObject({ status: 503, answer: { code: 'secret_missing' } })
    expect(bench.troubles.map(String)).toEqual([expect.stringContaining('SHOP_TOKEN')])
    await bench.clock.advance(60_000)
    await bench.send(token, '{}')
    expect([bench.troubles.length, bench.delivered, bench.hooks.refusals('inbox')]).toEqual([2, [], { secret_missing: 3 }])
  })

  test('is the same 404 whatever part of the address is wrong', async () => {
    const bench = open().define({ type: 'poll', every_ms: 60_000 }, 'poller')
    const found = [
      '/hooks/acme/analytics/x',
      '/hooks/acme/x/orders',
      '/hooks/x/analytics/orders',
      '/pubsub/acme/analytics/inbox',
      '/pubsub/acme/analytics/poller',
    ]
    const answers = await Promise.all(found.map((path) => bench.send(json, '{}', path)))
    bench.remove()
    answers.push(await bench.send(json, '{}'))
    bench.answer = async () => ({ kind: 'standstill', code: 'removed', by: null, reason: null })
    answers.push(await bench.define({ type: 'webhook', path: 'orders', verify: 'none' }, 'late').send(json, '{}'))
    for (const { status, answer } of answers) expect([status, answer]).toEqual([404, answers[0]?.answer])
    expect(bench.delivered.length).toBe(1)
  })

  test.each(['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH'])('is 405 to %s, on any path', async (name) => {
    for (const path of ['/hooks/acme/analytics/orders', '/hooks/acme/analytics/x', '/pubsub/acme/analytics/x']) {
      const response = await method(open(), name, {}, path)
      expect([response.status, response.headers.get('allow')]).toEqual([
        405,
        path.startsWith('/hooks') ? 'OPTIONS, POST' : 'POST',
      ])
    }
  })

  test('allows a sender of CloudEvents that asks before', async () => {
    const asked = { 'webhook-request-origin': 'eventemitter.example.com', 'webhook-request-rate': '120' }
    const { status, headers } = await method(open(), 'OPTIONS', asked)
    expect([status, headers.get('webhook-allowed-origin'), headers.get('webhook-allowed-rate')]).toEqual([
      200,
      'eventemitter.example.com',
      '*',
    ])
    expect(headers.get('allow')).toContain('POST')
    expect((await method(open(), 'OPTIONS', asked, '/hooks/acme/analytics/x')).status).toBe(404)
    const other = await method(open(), 'OPTIONS', { 'access-control-request-method': 'POST', origin: 'https://evil.example' })
    expect([
      other.status,
      other.headers.get('webhook-allowed-origin'),
      other.headers.get('access-control-allow-origin'),
    ]).toEqual([204, null, null])
  })
})

describe('sensors that share a path', () => {
  const both = () => {
    const bench = open('token', 'a').define({ type: 'webhook', path: 'orders', verify: 'none' }, 'b')
    bench.answer = async ({ sensor_id, message }) => ({
      kind: 'accepted',
      message_id: message.id,
      eval_id: `e-${sensor_id}`,
      run_ids: [sensor_id],
      runs: [],
      repeated: sensor_id === 'a',
      conflict: false,
    })
    return bench
  }

  test('each get a message under one id, if each accepts the sender', async () => {
    const bench = both()
    expect(await bench.send(token, '{}')).toMatchObject({ status: 200, answer: { run_ids: ['a', 'b'], repeated: false } })
    expect(new Set(bench.delivered.map(({ message }) => message.id)).size).toBe(1)
    expect(await bench.send(json, '{}')).toMatchObject({ status: 200, answer: { run_ids: ['b'] } })
    expect([bench.hooks.refusals('a'), bench.hooks.refusals('b')]).toEqual([{ bad_token: 1 }, {}])
  })

  test('make the sender try again if one of them fails', async () => {
    const bench = both()
    const accept = bench.answer
    bench.answer = async (delivery) =>
      delivery.sensor_id === 'b' ? { kind: 'failed', message_id: 'm', error: '', try: 1, max_tries: 5 } : await accept(delivery)
    expect((await bench.send(token, '{}')).status).toBe(500)
  })

  test('make the sender give up a message that fits one of them and not the other, unless one wants it again', async () => {
    const bench = both()
    const accept = bench.answer
    const unfit = { kind: 'failed', message_id: 'm', error: '', unfit_field: 'order', try: 1, max_tries: 5 } as const
    bench.answer = async (delivery) => (delivery.sensor_id === 'b' ? unfit : await accept(delivery))
    expect((await bench.send(token, '{}')).status).toBe(422)
    bench.answer = async ({ sensor_id }) =>
      sensor_id === 'b' ? unfit : { kind: 'standstill', code: 'paused', by: null, reason: null }
    expect((await bench.send(token, '{}')).status).toBe(503)
  })
})

describe('[A52] whatever is sent', () => {
  const header = fc.oneof(
    fc.constantFrom(
      'webhook-id',
      'webhook-timestamp',
      'webhook-signature',
      'x-hub-signature-256',
      'authorization',
      'x-servo-token',
      'content-type',
      'content-encoding',
      'ce-id',
      'ce-specversion',
      'ce-source',
      'ce-type',
      'ce-time',
      'idempotency-key',
      'origin',
      'x-goog-pubsub-message-id',
    ),
    fc
      .stringMatching(/^[a-z][a-z-]{0,10}$/)
      .filter((name) => !['host', 'connection', 'expect', 'upgrade', 'te', 'trailer'].includes(name)),
  )
  const value = fc.oneof(
    fc.constantFrom(
      'application/json',
      'application/cloudevents+json',
      'text/plain',
      'application/x-www-form-urlencoded',
      '1.0',
      '1614265330',
      'Bearer right',
      'Bearer a.b.c',
      'gzip',
      '%ff',
      'v1,AAAA',
    ),
    fc.stringMatching(/^[\x21-\x7e\x80-\xff]{0,30}$/),
  )
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.json().map((text) => new TextEncoder().encode(text)),
  )

  test('no answer is a failure of the server, and only a count is kept', async () => {
    const schemes = fc.constantFrom('standard', 'github', 'token', 'none', 'pubsub')
    await fc.assert(
      fc.asyncProperty(schemes, fc.dictionary(header, value, { maxKeys: 8 }), body, async (scheme, headers, bytes) => {
        const bench = new HookBench({ keyOf: async () => undefined })
        if (scheme === 'pubsub') bench.define({ type: 'pubsub', topic: 't' })
        else bench.define({ type: 'webhook', path: 'orders', verify: scheme, secrets: ['SHOP_TOKEN', 'OLD_TOKEN'] })
        bench.environment = { SHOP_TOKEN: 'right', OLD_TOKEN: 'never-sent' }
        const path = scheme === 'pubsub' ? '/pubsub/acme/analytics/inbox' : undefined
        const { status, answer } = await bench.send(headers, Uint8Array.from(bytes), path)
        expect([200, 400, 401, 403, 413, 415]).toContain(status)
        expect(bench.delivered.length).toBe(status === 200 ? 1 : 0)
        const counts = Object.entries(bench.hooks.refusals('inbox'))
        expect(counts.map(([, count]) => count)).toEqual(status === 200 ? [] : [1])
        for (const [reason] of counts) expect(refusalReasons).toContain(reason)
        expect(JSON.stringify(answer)).not.toContain('never-sent')
        expect(bench.troubles).toEqual([])
      }),
      { numRuns: 400 },
    )
  })
})
