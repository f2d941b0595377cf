import { describe, expect, test } from 'vitest'
import { MINUTE_MS } from '../../../src/lib/time.ts'
import { VirtualClock } from '../../../src/testing/virtual-clock.ts'
import { Led } from '../led.ts'

const clock = new VirtualClock()
const minutesAgo = (count: number) =>
  new Date(Math.floor(clock.now() / MINUTE_MS) * MINUTE_MS - count * MINUTE_MS).toISOString().slice(0, 16)
const minutely = (count: number) => ({ type: 'minutely', start: minutesAgo(count), timezone: 'UTC' }) as const
const keys = (count: number) => ({ type: 'keys', keys: Array.from({ length: count }, (_, i) => `k${i}`) }) as const
const multi = (dimensions: object) => ({ type: 'multi', dimensions }) as never
const asset = (asset_key: string, more: object = {}) => ({ asset_key, kind: 'asset' as const, ...more })
const all = { type: 'all' as const }

const project = {
  assets: [
    asset('dyn', { partitions: { type: 'dynamic', name: 'ds' } }),
    asset('million', { partitions: minutely(1_000_000) }),
    asset('billion', { partitions: multi({ at: minutely(1_000_000), k: keys(1_000) }) }),
    asset('below', { deps: [{ asset_key: 'billion', mapping: all }], inputs: { all: { asset_key: 'billion', mapping: all } } }),
    asset('grid', { partitions: multi({ a: keys(300), b: keys(1_000) }) }),
    // Each of its keys is made from 300 partitions, no two of them neighbours.
    asset('columns', {
      partitions: keys(1_000),
      deps: [{ asset_key: 'grid', mapping: { type: 'dimension', dimension: 'b' } }],
    }),
  ],
}

async function open() {
  const troubles: unknown[] = []
  const led = await Led.open(project, { automation: true, onTrouble: (error) => troubles.push(error) })
  led.server.orchestrator.projectKnown()
  const preview = (name: string, partitions: object, more: object = {}) =>
    led.post('/backfills/preview', { select: [name], partitions, ...more })
  return { led, preview, troubles }
}
const filter = (filters: object) => ({ type: 'filter', filters })

describe('a selector', () => {
  test('with many stars is answered like any other', async () => {
    const { led, preview } = await open()
    await led.post('/partitions/sets/ds/keys', { add: ['a'.repeat(120), `${'a'.repeat(60)}b`] })
    const { status, body } = await preview('dyn', filter({ partition: '*a*a*a*a*a*a*a*a*a*a*b' }))
    expect([status, body.total_partitions]).toEqual([200, 1])
  })

  test.each([
    ['a filter of the dimension that varies fastest', filter({ k: '*1' }), {}],
    ['a filter of the other dimension', filter({ at: '*' }), {}],
    ['keys of which each means a million', { type: 'explicit', partition_keys: ['k=k1', 'k=k3', 'k=k5'] }, {}],
    ['what is missing', { type: 'missing' }, {}],
    ['what is stale', { type: 'stale' }, {}],
    ['what has failed', { type: 'failed' }, {}],
    ['what is missing in a range', { type: 'missing', start: minutesAgo(900_000) }, {}],
    ['all that does not exist', all, { skip_existing: true }],
    ['what is missing in a small range', { type: 'missing', start: minutesAgo(2), end: minutesAgo(1) }, {}],
  ])('of %s is refused if it means too many of a billion, before any is listed', async (_, partitions, more) => {
    const { preview, troubles } = await open()
    const { status, body } = await preview('billion', partitions, more)
    expect([status, body.code]).toEqual([400, 'too_many_partitions'])
    expect(body.hint).toBeTruthy()
    expect(troubles).toEqual([])
  })

  test('of some of a billion is answered, and so is an asset that is made from all of them', async () => {
    const { preview } = await open()
    expect((await preview('billion', filter({ k: 'k1', at: minutesAgo(7) }))).body.total_partitions).toBe(1)
    expect((await preview('billion', { type: 'range', start: minutesAgo(7), end: minutesAgo(5) })).body.total_partitions).toBe(
      3_000,
    )
    const explicit = { type: 'explicit', partition_keys: ['k=k1'] }
    expect((await preview('billion', explicit)).body.total_partitions).toBe(1_000_000)
    expect((await preview('below', all)).body).toMatchObject({ total_partitions: 1, missing_inputs: [] })
  })

  test('that spans a million keys takes those that match, however far apart they lie', async () => {
    const { preview } = await open()
    const count = async (partition: string) => (await preview('million', filter({ partition }))).body.total_partitions
    expect(await count('*:*7')).toBe(100_000)
    expect(await count(`${minutesAgo(1).slice(0, 10)}*`)).toBeGreaterThan(0)
    expect((await preview('million', filter({ partition: '*nothing*' }))).body.code).toBe('no_such_partition')
  })

  test('that has to be carried over to another asset finds partitions that lie far apart', async () => {
    const { led } = await open()
    const partitions = { type: 'explicit', partition_keys: ['k3', 'k5'] }
    const { body } = await led.post('/backfills/preview', { select: ['grid', 'columns'], partitions })
    expect(body.assets).toMatchObject([
      { asset_key: 'grid', partitions: 600, first: 'a=k0,b=k3', last: 'a=k299,b=k5' },
      { asset_key: 'columns', partitions: 2 },
    ])
  })
})

describe('a request that fails because of a bug', () => {
  test('is logged once, with the stack; a mistake of the caller is not', async () => {
    const { led, preview, troubles } = await open()
    await preview('dyn', filter({ nowhere: 'x' }))
    expect(troubles).toEqual([])
    led.server.api.backfills.preview = () => Promise.reject(new RangeError('Invalid array length'))
    const { status, body } = await preview('dyn', all)
    expect([status, body.code]).toEqual([500, 'internal'])
    expect(JSON.stringify(body)).not.toContain('Invalid array length')
    expect(troubles.map(String)).toEqual([
      expect.stringMatching(
        /POST \/api\/v1\/orchestration\/backfills\/preview could not be answered: RangeError: Invalid array length\n +at /,
      ),
    ])
  })
})
