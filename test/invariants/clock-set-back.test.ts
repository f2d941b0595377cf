import { expect, test } from 'vitest'
import { projectManifest } from '../../src/contract/project-manifest.ts'
import { HOUR_MS } from '../../src/lib/time.ts'
import { Led } from '../server/led.ts'

const asset = (asset_key: string, more: object = {}) => ({ asset_key, kind: 'asset' as const, ...more })
const customers = asset('customers', { partitions: { type: 'dynamic', name: 'customers' } })

test('[P19] what is declared counts, although a clock that was ahead recorded what was declared before', async () => {
  const led = await Led.open({ assets: [asset('a')] })
  const define = (...assets: object[]) => led.server.define(projectManifest.parse({ project: 'led', assets }))
  const shown = async () =>
    (await led.get('/assets')).body.assets.map(({ asset_key, description }: Record<string, string>) => [asset_key, description])
  led.clock.jump(2 * HOUR_MS)
  await define(asset('a', { description: 'ahead' }), asset('b'))
  led.clock.jump(-2 * HOUR_MS)
  await define(asset('a', { description: 'now' }))
  expect(await shown()).toEqual([['a', 'now']])
  await define(asset('a', { description: 'later' }), asset('c'))
  expect(await shown()).toEqual([
    ['a', 'later'],
    ['c', null],
  ])
})

test('[P19] a key is removed, although a clock that was ahead recorded that it was added', async () => {
  const led = await Led.open({ assets: [customers] })
  const change = async (body: object) => (await led.post('/partitions/sets/customers/keys', body)).body
  const keys = async () =>
    (await led.get('/partitions/sets/customers/keys')).body.keys.map((row: { partition_key: string }) => row.partition_key)
  led.clock.jump(HOUR_MS)
  await change({ add: ['acme', 'initech'] })
  led.clock.jump(-HOUR_MS)
  expect(await change({ remove: ['acme'] })).toMatchObject({ removed: 1 })
  expect(await keys()).toEqual(['initech'])
  await change({ add: ['acme'] })
  await change({ remove: ['initech'] })
  expect(await keys()).toEqual(['acme'])
})
