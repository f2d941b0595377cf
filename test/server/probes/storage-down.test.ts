import { describe, expect, test } from 'vitest'
import { ServoError } from '../../../src/lib/error.ts'
import { MINUTE_MS, SECOND_MS } from '../../../src/lib/time.ts'
import type { StoreRequest } from '../../../src/testing/counting-store.ts'
import { Led } from '../led.ts'

const assets = [{ asset_key: 'orders', kind: 'asset' as const }]
const isSegment = ({ path, method }: StoreRequest): boolean => method === 'create' && path.includes('/ledger/')
const never = (): Promise<never> => new Promise<never>(() => undefined)

/** What is answered within a second. */
async function within<T>(led: Led, asked: Promise<T>): Promise<T | 'no answer'> {
  let answer: T | 'no answer' = 'no answer'
  void asked.then((given) => {
    answer = given
  })
  await led.clock.advance(SECOND_MS)
  return answer
}

describe('[H7] while the storage is down', () => {
  test('a store that hangs keeps nobody waiting for longer than a second, whatever they ask, and goes on afterwards', async () => {
    const led = await Led.open({ assets })
    await led.request('before', 'orders')
    await led.clock.advance(MINUTE_MS)
    const { token } = (await led.post('/tokens', { name: 'looker', role: 'viewer' })).body
    const hung = Promise.withResolvers<void>()
    led.before = () => hung.promise
    const down = { status: 503, body: { code: 'storage_unavailable' } }
    expect(await within(led, led.post('/runs', { select: ['orders'], key: 'meanwhile' }))).toMatchObject(down)
    expect(await within(led, led.post('/tokens', { name: 'ci', role: 'viewer' }))).toMatchObject(down)
    // Who calls cannot be known.
    expect(await within(led, led.post('/runs/preview', { select: ['orders'] }, token))).toMatchObject(down)
    expect((await led.probe('/health/live')).status).toBe(200)
    const ready = await within(led, led.probe('/health/ready'))
    expect(ready).toMatchObject({ status: 503, text: expect.stringContaining('the storage does not answer') })
    led.before = () => undefined
    hung.resolve()
    await led.clock.advance(MINUTE_MS)
    expect(await led.probe('/health/ready')).toMatchObject({ status: 200 })
    const again = await led.post('/runs', { select: ['orders'], key: 'meanwhile' })
    expect(again).toMatchObject({ status: 202, body: { created: false } })
  })

  test('a disk that answers questions and writes nothing is down for those who change something, and for answers that depend on it', async () => {
    const led = await Led.open({ assets })
    await led.request('before', 'orders')
    await led.clock.advance(MINUTE_MS)
    led.before = (request) => (isSegment(request) ? never() : undefined)
    expect(await within(led, led.get('/assets'))).toMatchObject({ status: 200 })
    expect(await within(led, led.post('/runs', { select: ['orders'], key: 'a' }))).toMatchObject({ status: 503 })
    // Memory is ahead of what is durable, so nobody is told of it.
    expect(await within(led, led.get('/runs'))).toMatchObject({ status: 503 })
    expect(await within(led, led.probe('/health/ready'))).toMatchObject({ status: 503 })
  })

  test('a store that refuses is reported within a second too', async () => {
    const led = await Led.open({ assets })
    led.before = (request) => {
      if (isSegment(request)) throw new ServoError('unavailable', 'away', 'the store is away')
    }
    const refused = await within(led, led.post('/runs', { select: ['orders'], key: 'a' }))
    expect(refused).toMatchObject({ status: 503, body: { code: 'storage_unavailable' } })
    led.before = () => undefined
    await led.clock.advance(MINUTE_MS)
    expect(await led.post('/runs', { select: ['orders'], key: 'a' })).toMatchObject({ status: 202 })
  })

  test('requests that hang are not taken on without end', async () => {
    const led = await Led.open({ assets, server: { limits: { requests_in_flight: 5 } } })
    led.before = never
    const asked = Array.from({ length: 20 }, (_, i) => led.post('/runs', { select: ['orders'], key: `k${i}` }))
    await led.clock.advance(SECOND_MS)
    const codes = (await Promise.all(asked)).map(({ status, body }) => `${status} ${body.code}`)
    expect(codes.filter((code) => code === '503 too_busy')).toHaveLength(15)
    expect(codes.filter((code) => code === '503 storage_unavailable')).toHaveLength(5)
    // They are still there.
    expect(await led.post('/runs', { select: ['orders'] })).toMatchObject({ body: { code: 'too_busy' } })
    expect((await led.probe('/health/live')).status).toBe(200)
  })

  test('a worker that waits for work is not told of an outage', async () => {
    const led = await Led.open({ assets })
    const asked = led.post('/workers/claim', { worker_id: 'w', queues: ['q'], capacity: 1, wait_ms: 3_000 })
    expect(await within(led, asked)).toBe('no answer')
    await led.clock.advance(3 * SECOND_MS)
    expect(await asked).toMatchObject({ status: 200, body: { dispatches: [] } })
  })
})
