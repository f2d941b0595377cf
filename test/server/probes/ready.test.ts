import { expect, test } from 'vitest'
import { ServoError } from '../../../src/lib/error.ts'
import { SECOND_MS } from '../../../src/lib/time.ts'
import type { StoreRequest } from '../../../src/testing/counting-store.ts'
import { Led } from '../led.ts'

const assets = [{ asset_key: 'orders', kind: 'asset' as const }]

const away = (): never => {
  throw new ServoError('unavailable', 'away', 'the store is away')
}

/** Asks whether the server is ready, while time goes on for longer than the store may take. */
async function ready(led: Led): Promise<{ status: number; detail?: string }> {
  const asked = led.probe('/health/ready')
  await led.clock.advance(2 * SECOND_MS)
  const { status, text } = await asked
  return { status, detail: JSON.parse(text).detail }
}

test('[H1] a server is ready while it leads, can write, its storage answers and its project is loaded; otherwise it says what is missing', async () => {
  const led = await Led.open({ assets })
  expect(await led.probe('/health/ready')).toMatchObject({ status: 200, text: '{"ok":true}' })

  led.before = ({ method }: StoreRequest) => (method === 'size' ? away() : undefined)
  await led.clock.advance(2 * SECOND_MS)
  expect(await ready(led)).toEqual({ status: 503, detail: 'this server is not ready: the storage does not answer' })
  led.before = ({ method }: StoreRequest) => (method === 'size' ? new Promise<void>(() => undefined) : undefined)
  await led.clock.advance(2 * SECOND_MS)
  expect(await ready(led)).toEqual({ status: 503, detail: 'this server is not ready: the storage does not answer' })

  led.before = ({ method }: StoreRequest) => (method === 'create' ? away() : undefined)
  const asked = led.request('one')
  await led.clock.advance(2 * SECOND_MS)
  expect(await ready(led)).toEqual({
    status: 503,
    detail: 'this server is not ready: the state of the project cannot be written',
  })
  led.before = () => undefined
  await led.clock.advance(20 * SECOND_MS)
  await asked.catch(() => undefined)
  expect((await ready(led)).status).toBe(200)

  led.lease.lose({ notifies: false })
  expect(await ready(led)).toEqual({ status: 503, detail: 'this server is not ready: another process leads this project' })
})

test('[H1] a server whose project is not loaded yet is not ready, and is alive', async () => {
  const led = await Led.open()
  expect(await ready(led)).toEqual({ status: 503, detail: 'this server is not ready: the project is not loaded' })
  expect((await led.probe('/health/live')).status).toBe(200)
})

test('[H1] the storage is asked at most once a second, however often somebody asks', async () => {
  const led = await Led.open({ assets })
  await led.clock.advance(2 * SECOND_MS)
  let requests = 0
  led.before = () => {
    requests += 1
  }
  for (let i = 0; i < 100; i++) await led.probe('/health/ready')
  expect(requests).toBe(1)
})

test('[H4] metrics need the token; health does not, and says nothing of the project', async () => {
  const led = await Led.open({ assets })
  expect(await led.probe('/metrics')).toMatchObject({ status: 401 })
  expect(await led.probe('/metrics', 'wrong')).toMatchObject({ status: 401 })
  expect((await led.metrics()).startsWith('# HELP ')).toBe(true)
  expect((await led.probe('/health/ready')).text).toBe('{"ok":true}')
})
