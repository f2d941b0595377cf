import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AssetDefinitionInput, assetDefinition } from '../../contract/project-manifest.ts'
import { DAY_MS, HOUR_MS } from '../../lib/time.ts'
import { concat, keysOf } from '../../partitions/key-list.ts'
import { graphOf } from '../assets/definitions.ts'
import { GraphPartitions, taskKey } from '../assets/graph-partitions.ts'
import { explain } from './explain.ts'
import { CAUSES, Staleness } from './staleness.ts'
import { StatusColumns } from './status-columns.ts'
import type { Cause } from './status-names.ts'

const seed = Number(process.env['SEED'] ?? Date.now())
const NOW = Date.UTC(2025, 2, 15, 12)
const days = { type: 'daily', start: '2025-01-01', timezone: 'UTC' }
const months = { type: 'monthly', start: '2025-01', timezone: 'UTC' }
const regions = { type: 'keys', keys: ['eu', 'us'] }

type Asset = Omit<AssetDefinitionInput, 'kind'> & { kind?: AssetDefinitionInput['kind'] }

/** Some assets at noon of a day in March, and what is known of their partitions. */
function world(assets: readonly Asset[], nowMs = NOW) {
  const graph = graphOf(
    assets.map((asset) => ({
      definition: assetDefinition.parse({ kind: 'asset', code_version: 'v1', ...asset }),
      removed: false,
    })),
  )
  const partitions = new GraphPartitions(graph.mappings, { nowMs, dynamicKeys: () => [] })
  const columns = new Map<string, StatusColumns>()
  const columnsOf = (key: string): StatusColumns => {
    let own = columns.get(key)
    if (own === undefined) {
      own = new StatusColumns(partitions.of(key))
      columns.set(key, own)
    }
    return own
  }
  const staleness = (): Staleness => new Staleness({ graph, partitions, columns: columnsOf, nowMs })
  return {
    graph,
    partitions,
    columnsOf,
    staleness,
    made(asset: string, key: string, at: number, { inputsAt = at, code = 'v1' } = {}) {
      const own = columnsOf(asset)
      own.made(own.set.positionOf(key) as number, at, inputsAt, own.codeOf(code))
    },
    /** Everything there is, each after what it is made from. */
    allMade() {
      for (const [i, key] of graph.graph.order.entries())
        for (const each of partitions.of(key).keys()) this.made(key, each, 1_000 + i)
    },
    /** What a partition is called stale for. */
    causes(asset: string, key = ''): Cause[] {
      const now = staleness()
      const own = now.asset(asset)
      const causes = now.causes(own, own.set.positionOf(key) as number)
      return (Object.keys(CAUSES) as Cause[]).filter((cause) => causes & CAUSES[cause])
    },
    display(asset: string, key = '') {
      const now = staleness()
      const own = now.asset(asset)
      return now.display(own, own.set.positionOf(key) as number)
    },
    why(asset: string, key = '') {
      const position = columnsOf(asset).set.positionOf(key) as number
      return explain(asset, position, { staleness: staleness(), graph, partitions, definedAt: () => 777 })
    },
  }
}

const chain = () =>
  world([
    { asset_key: 'raw', partitions: days },
    { asset_key: 'clean', partitions: days, deps: [{ asset_key: 'raw' }] },
    { asset_key: 'month', partitions: months, deps: [{ asset_key: 'clean' }] },
    { asset_key: 'total', deps: [{ asset_key: 'month', mapping: { type: 'all' } }] },
  ])

describe('a partition', () => {
  test('[P11] that was never made says so, and so does whatever is made from it', () => {
    const { causes, display } = chain()
    expect(causes('raw', '2025-01-05')).toEqual(['never_materialized'])
    expect(causes('clean', '2025-01-05')).toEqual(['never_materialized', 'upstream_missing'])
    expect(display('clean', '2025-01-05')).toBe('NEVER_MATERIALIZED')
  })

  test('is fresh when all it is made from is older than what it read', () => {
    const shop = chain()
    shop.allMade()
    expect(shop.causes('month', '2025-01')).toEqual([])
    expect(shop.display('total')).toBe('MATERIALIZED')
    expect(shop.why('total')).toEqual([])
  })

  test('[P11] is fresh when its upstream was made in the millisecond in which it looked, and stale one later', () => {
    const shop = chain()
    shop.allMade()
    shop.made('raw', '2025-01-05', 5_000)
    shop.made('clean', '2025-01-05', 5_010, { inputsAt: 5_000 })
    expect(shop.causes('clean', '2025-01-05')).toEqual([])
    shop.made('raw', '2025-01-06', 5_001)
    shop.made('clean', '2025-01-06', 5_010, { inputsAt: 5_000 })
    expect(shop.causes('clean', '2025-01-06')).toEqual(['upstream_changed'])
  })

  test('[P11] made again marks exactly what is made from it, down to the end', () => {
    const shop = chain()
    shop.allMade()
    shop.made('raw', '2025-01-05', 9_000)
    const now = shop.staleness()
    const stale = (key: string): string[] => {
      const asset = now.asset(key)
      return [...asset.set.keys()].filter((_, position) => now.isStale(asset, position))
    }
    expect([stale('raw'), stale('clean'), stale('month'), stale('total')]).toEqual([[], ['2025-01-05'], ['2025-01'], ['']])
    expect(shop.causes('month', '2025-01')).toEqual([])
    expect(shop.why('total')).toEqual([
      {
        cause: 'upstream_changed',
        asset_key: 'clean',
        count: 1,
        partition_keys: ['2025-01-05'],
        upstream: { asset_key: 'raw', partition_keys: ['2025-01-05'], count: 1, failed: 0, absent: 0 },
        since: 9_000,
        path: ['raw[2025-01-05]', 'clean[2025-01-05]', 'month[2025-01]', 'total'],
      },
    ])
  })

  test('[P11] of other code is stale, since that code was recorded', () => {
    const shop = chain()
    shop.allMade()
    shop.made('clean', '2025-01-05', 5_000, { code: 'v0' })
    shop.made('month', '2025-01', 6_000)
    shop.made('total', '', 7_000)
    expect(shop.causes('clean', '2025-01-05')).toEqual(['code_changed'])
    expect(shop.display('total')).toBe('STALE')
    expect(shop.why('total')).toMatchObject([
      { cause: 'code_changed', asset_key: 'clean', since: 777, path: ['clean[2025-01-05]', 'month[2025-01]', 'total'] },
    ])
  })

  test('[P10] whose last attempt failed shows that before it shows that it is stale', () => {
    const shop = chain()
    shop.allMade()
    shop.made('raw', '2025-01-05', 9_000)
    shop.columnsOf('clean').attempted(4, 9_500, true)
    expect(shop.display('clean', '2025-01-05')).toBe('MATERIALIZED_BUT_LAST_ATTEMPT_FAILED')
    expect(shop.causes('clean', '2025-01-05')).toEqual(['upstream_changed'])
  })

  test('[P10] that was never made and whose attempt failed is counted among the failed', () => {
    const shop = chain()
    shop.made('raw', '2025-01-01', 1_000)
    shop.made('raw', '2025-01-04', 1_000)
    const raw = shop.columnsOf('raw')
    for (const position of [0, 1, 2]) raw.attempted(position, 2_000, true)
    raw.attempted(3, 2_000, true)
    raw.attempted(4, 2_000, false)
    // The first was made before and the second never; the third and fourth were wiped since.
    raw.wiped(2, 3_000)
    raw.wiped(3, 3_000)
    const now = shop.staleness()
    const { count } = now.asset('raw').set
    expect(now.count(now.asset('raw'))).toMatchObject({
      statuses: { MATERIALIZED_BUT_LAST_ATTEMPT_FAILED: 1, NEVER_MATERIALIZED: count - 1, MATERIALIZED: 0 },
      lastAttemptFailed: 2,
    })
  })

  test('[P11] that many others are made from is to blame once', () => {
    const shop = world([
      { asset_key: 'rates' },
      { asset_key: 'clean', partitions: days, deps: [{ asset_key: 'rates' }] },
      { asset_key: 'late', partitions: { ...days, start: '2025-01-03' } },
      { asset_key: 'hour', partitions: { ...days, type: 'hourly', start: '2025-01-01T00' }, deps: [{ asset_key: 'late' }] },
      {
        asset_key: 'total',
        deps: [
          { asset_key: 'clean', mapping: { type: 'all' } },
          { asset_key: 'hour', mapping: { type: 'all' } },
        ],
      },
    ])
    shop.allMade()
    shop.made('rates', '', 9_000)
    const because = shop.why('total')
    const { count } = shop.partitions.of('clean')
    expect(because.find(({ asset_key }) => asset_key === 'clean')).toMatchObject({
      cause: 'upstream_changed',
      count,
      upstream: { asset_key: 'rates', partition_keys: [''], count: 1 },
    })
    // 48 hours of two days before the first, and 12 of today, which does not exist yet.
    expect(because.find(({ asset_key }) => asset_key === 'hour')).toMatchObject({
      cause: 'upstream_missing',
      count: 60,
      upstream: { asset_key: 'late', partition_keys: ['2025-01-01', '2025-01-02', '2025-03-15'], count: 3, absent: 3 },
    })
  })

  test('[P9] that was wiped was never made, and is missing below', () => {
    const shop = chain()
    shop.allMade()
    shop.columnsOf('clean').wiped(4, 2_000)
    expect(shop.display('clean', '2025-01-05')).toBe('NEVER_MATERIALIZED')
    expect(shop.why('month', '2025-01')).toMatchObject([
      { cause: 'upstream_missing', upstream: { asset_key: 'clean', partition_keys: ['2025-01-05'], count: 1 } },
    ])
  })

  test('[P12] needs nothing of a source that nobody told about, and notices when somebody does', () => {
    const shop = world([
      { asset_key: 'orders', kind: 'source', uri: 'x' },
      { asset_key: 'clean', deps: [{ asset_key: 'orders' }] },
    ])
    shop.made('clean', '', 100)
    expect(shop.causes('clean')).toEqual([])
    shop.made('orders', '', 101)
    expect(shop.causes('clean')).toEqual(['upstream_changed'])
    expect(shop.causes('orders')).toEqual([])
  })

  test('[P12] of a day needs nothing of the same day of a source that nobody told about', () => {
    const shop = world([
      { asset_key: 'orders', kind: 'source', uri: 'x', partitions: days },
      { asset_key: 'clean', partitions: days, deps: [{ asset_key: 'orders' }] },
    ])
    shop.made('clean', '2025-01-02', 100)
    expect(shop.causes('clean', '2025-01-02')).toEqual([])
    expect(shop.display('clean', '2025-01-02')).toBe('MATERIALIZED')
    shop.made('orders', '2025-01-02', 101)
    expect(shop.causes('clean', '2025-01-02')).toEqual(['upstream_changed'])
    expect(shop.display('clean', '2025-01-02')).toBe('STALE')
  })

  test('[P11] that needs windows from before there were any says that they are missing', () => {
    const shop = world([
      { asset_key: 'late', partitions: { ...days, start: '2025-02-10' } },
      { asset_key: 'early', partitions: months, deps: [{ asset_key: 'late' }] },
    ])
    shop.allMade()
    expect(shop.causes('early', '2025-02')).toEqual(['upstream_missing'])
    const [because] = shop.why('early', '2025-02')
    expect(because).toMatchObject({ cause: 'upstream_missing', upstream: { asset_key: 'late', count: 9 } })
    expect(because?.upstream?.partition_keys[0]).toBe('2025-02-01')
  })

  test('[P11] of an asset that is made from its own past is stale when its past is, however long ago', () => {
    const before = { type: 'time_window', start_offset: -1, end_offset: -1 }
    const shop = world([{ asset_key: 'sum', partitions: days, deps: [{ asset_key: 'sum', mapping: before }] }])
    for (const [i, key] of [...shop.partitions.of('sum').keys()].entries()) shop.made('sum', key, 1_000 + i)
    expect(shop.display('sum', '2025-03-14')).toBe('MATERIALIZED')
    shop.made('sum', '2025-01-03', 9_000)
    expect(shop.causes('sum', '2025-01-04')).toEqual(['upstream_changed'])
    expect(shop.display('sum', '2025-03-14')).toBe('STALE')
    const [because] = shop.why('sum', '2025-01-06')
    expect(because?.path).toEqual(['sum[2025-01-03]', 'sum[2025-01-04]', 'sum[2025-01-05]', 'sum[2025-01-06]'])
  })

  test('of an asset that is made from its own past and from others is stale when those of its past are', () => {
    const before = { type: 'time_window', start_offset: -1, end_offset: -1 }
    const shop = world([
      { asset_key: 'in', partitions: days },
      { asset_key: 'raw', partitions: days, deps: [{ asset_key: 'in' }] },
      { asset_key: 'sum', partitions: days, deps: [{ asset_key: 'raw' }, { asset_key: 'sum', mapping: before }] },
    ])
    shop.allMade()
    expect(shop.display('sum', '2025-03-14')).toBe('MATERIALIZED')
    shop.made('in', '2025-01-03', 9_000)
    expect(shop.display('sum', '2025-03-14')).toBe('STALE')
    expect(shop.display('sum', '2025-01-02')).toBe('MATERIALIZED')
  })

  test.each([1, 100, 100_000])('[P11] made from %i partitions knows when one of them is newer or missing', (count) => {
    const keys = Array.from({ length: count }, (_, i) => `k${i}`)
    const shop = world([
      { asset_key: 'many', partitions: { type: 'keys', keys } },
      { asset_key: 'one', deps: [{ asset_key: 'many', mapping: { type: 'all' } }] },
    ])
    shop.allMade()
    expect(shop.causes('one')).toEqual([])
    shop.made('many', `k${count - 1}`, 5_000)
    expect(shop.why('one')).toMatchObject([
      { cause: 'upstream_changed', upstream: { count: 1, partition_keys: [`k${count - 1}`] }, since: 5_000 },
    ])
    shop.columnsOf('many').wiped(0, 6_000)
    expect(shop.why('one').find(({ cause }) => cause === 'upstream_missing')?.upstream).toEqual({
      asset_key: 'many',
      partition_keys: ['k0'],
      count: 1,
      failed: 0,
      absent: 0,
    })
  })
})

describe('freshness', () => {
  const fresh = (freshness: object, partitions?: object) =>
    world([{ asset_key: 'a', policies: { freshness }, ...(partitions && { partitions: partitions as never }) }])
  const by = { type: 'by', by: '07:30', timezone: 'Europe/Paris' }

  test('[P11][P13] within a time asks for something made since', () => {
    const shop = fresh({ type: 'within', within_ms: HOUR_MS })
    shop.made('a', '', NOW - HOUR_MS)
    expect(shop.causes('a')).toEqual([])
    const older = fresh({ type: 'within', within_ms: HOUR_MS })
    older.made('a', '', NOW - HOUR_MS - 1)
    expect(older.why('a')).toMatchObject([{ cause: 'freshness', since: NOW - 1 }])
  })

  test('[P13] by a time of day asks for something made after the same time of the day before', () => {
    // At noon in London, 07:30 in Paris has passed: what it asks for is newer than 06:30 UTC of the day before.
    const last = Date.UTC(2025, 2, 15, 6, 30)
    const good = fresh(by)
    good.made('a', '', last - DAY_MS + 1)
    expect(good.causes('a')).toEqual([])
    const late = fresh(by)
    late.made('a', '', last - DAY_MS)
    expect(late.why('a')).toMatchObject([{ cause: 'freshness', since: last }])
  })

  test('[P13] of windows of time is only a question of being late', () => {
    const made = fresh({ type: 'within', within_ms: HOUR_MS }, days)
    made.made('a', '2025-01-01', 1_000)
    expect(made.causes('a', '2025-01-01')).toEqual([])
    // The window of the 14th closed twelve hours ago.
    expect(made.causes('a', '2025-03-14')).toEqual(['never_materialized', 'freshness'])
    expect(fresh({ type: 'within', within_ms: DAY_MS }, days).causes('a', '2025-03-14')).toEqual(['never_materialized'])
    expect(fresh({ ...by, by: '12:59' }, days).causes('a', '2025-03-14')).toEqual(['never_materialized', 'freshness'])
    expect(fresh({ ...by, by: '13:01' }, days).causes('a', '2025-03-14')).toEqual(['never_materialized'])
  })
})

describe('staleness', () => {
  const days = { type: 'daily', start: '2025-02-20', timezone: 'UTC' }
  const months = { type: 'monthly', start: '2025-02', timezone: 'UTC' }
  const multi = { type: 'multi', dimensions: { date: days, region: regions } }
  const assets: Asset[] = [
    { asset_key: 'source', kind: 'source', uri: 'x', partitions: days },
    { asset_key: 'a', partitions: multi, deps: [{ asset_key: 'source' }] },
    { asset_key: 'b', partitions: multi, deps: [{ asset_key: 'a' }] },
    { asset_key: 'c', partitions: months, deps: [{ asset_key: 'b' }] },
    { asset_key: 'd', partitions: { type: 'weekly', start: '2025-02-23', timezone: 'UTC' }, deps: [{ asset_key: 'source' }] },
    {
      asset_key: 'e',
      deps: [
        { asset_key: 'c', mapping: { type: 'all' } },
        { asset_key: 'd', mapping: { type: 'last' } },
      ],
    },
    { asset_key: 'f', partitions: days, deps: [{ asset_key: 'e' }, { asset_key: 'd' }] },
  ]

  test(`[P11] is the same for numbers by position as for keys one by one (seed ${seed})`, () => {
    const some = fc.array(
      fc.record({
        asset: fc.constantFrom(...assets.map(({ asset_key }) => asset_key)),
        at: fc.double({ min: 0, max: 0.999, noNaN: true }),
        kind: fc.constantFrom('made', 'code', 'wiped'),
        time: fc.integer({ min: 1_000, max: 1_010 }),
      }),
      { maxLength: 12 },
    )
    fc.assert(
      fc.property(some, fc.boolean(), (changes, everything) => {
        const shop = world(assets)
        if (everything) shop.allMade()
        for (const { asset, at, kind, time } of changes) {
          const columns = shop.columnsOf(asset)
          const position = Math.floor(at * columns.set.count)
          if (kind === 'wiped') columns.wiped(position, time)
          else columns.made(position, time, time, columns.codeOf(kind === 'code' ? 'v0' : 'v1'))
        }
        const now = shop.staleness()
        const known = new Map<string, boolean>()
        const isStale = (key: string, part: string): boolean => {
          const name = taskKey(key, part)
          let stale = known.get(name)
          if (stale === undefined) {
            const asset = now.asset(key)
            stale =
              now.causes(asset, asset.set.positionOf(part) as number) !== 0 ||
              shop.partitions
                .links(key)
                .some((link) =>
                  [...keysOf(concat(shop.partitions.upstreamOf(key, link, part).ranges))].some((up) =>
                    isStale(link.upstream, up),
                  ),
                )
            known.set(name, stale)
          }
          return stale
        }
        for (const { asset_key: key } of assets) {
          const fresh = shop.staleness()
          const asset = fresh.asset(key)
          const expected = [...asset.set.keys()].filter((part) => isStale(key, part))
          expect([...asset.set.keys()].filter((_, at) => fresh.isStale(asset, at))).toEqual(expected)
          const { statuses } = fresh.count(asset)
          expect(statuses.STALE + statuses.NEVER_MATERIALIZED).toBe(
            key === 'source' ? statuses.NEVER_MATERIALIZED : expected.length,
          )
          for (const part of expected.slice(0, 3)) expect(shop.why(key, part)).not.toEqual([])
        }
      }),
      { seed, numRuns: 15 },
    )
  })

  test('of a chain of six thousand assets is found', () => {
    const key = (i: number): string => `a${String(i).padStart(5, '0')}`
    const shop = world(
      Array.from({ length: 6_000 }, (_, i) => ({ asset_key: key(i), deps: i === 0 ? [] : [{ asset_key: key(i - 1) }] })),
    )
    shop.allMade()
    expect(shop.display(key(5_999))).toBe('MATERIALIZED')
    shop.made(key(0), '', 95_999)
    expect(shop.display(key(5_999))).toBe('STALE')
    const [because] = shop.why(key(5_999))
    expect(because?.path).toHaveLength(6_000)
  })
})
