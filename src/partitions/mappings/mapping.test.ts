import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toMs } from '../../lib/time.ts'
import { partitionDefinition } from '../definition.ts'
import { concat, keysOf } from '../key-list.ts'
import type { KeyRange } from '../key-range.ts'
import { type PartitionSet, partitionSet } from '../partition-set.ts'
import { downstreamOf, partitionMapping, upstreamOf } from './mapping.ts'

const now = '2025-04-02T12:00:00.000Z'
const setOf = (definition: unknown, at = now): PartitionSet =>
  partitionSet(definition === undefined ? undefined : partitionDefinition.parse(definition), {
    nowMs: toMs(at),
    dynamicKeys: (name) => (name === 'customers' ? ['ada', 'bob', 'eve'] : []),
  })
const list = (ranges: readonly KeyRange[]) => [...keysOf(concat(ranges))]

const days = setOf({ type: 'daily', start: '2025-03-28' })
const hours = setOf({ type: 'hourly', start: '2025-03-28T00' })
const regions = setOf({ type: 'keys', keys: ['eu', 'us'] })
const customers = setOf({ type: 'dynamic', name: 'customers' })
const whole = setOf(undefined)
const multi = (dimensions: Record<string, PartitionSet>) =>
  setOf({
    type: 'multi',
    dimensions: Object.fromEntries(Object.entries(dimensions).map(([name, set]) => [name, set.definition])),
  })
const market = multi({ date: days, region: regions })

function upstream(mapping: object, downstream: PartitionSet, above: PartitionSet, key: string) {
  const { ranges, missing } = upstreamOf(partitionMapping.parse(mapping), { downstream, upstream: above }, key)
  return { keys: list(ranges), missing: [...keysOf(missing)] }
}
const downstream = (mapping: object, below: PartitionSet, above: PartitionSet, key: string) =>
  list(downstreamOf(partitionMapping.parse(mapping), { downstream: below, upstream: above }, key))

describe('a partition is made of', () => {
  test('the one of the same key, which may be missing', () => {
    const later = setOf({ type: 'daily', start: '2025-03-30' })
    expect(upstream({ type: 'identity' }, days, later, '2025-03-30')).toEqual({ keys: ['2025-03-30'], missing: [] })
    expect(upstream({ type: 'identity' }, days, later, '2025-03-28')).toEqual({ keys: [], missing: ['2025-03-28'] })
    expect(upstream({ type: 'identity' }, market, market, 'region=eu,date=2025-03-30').keys).toEqual([
      'date=2025-03-30,region=eu',
    ])
  })

  test('[P4] the window before, except the first, which has none to wait for', () => {
    const before = { type: 'time_window', start_offset: -1, end_offset: -1 }
    expect(upstream(before, days, days, '2025-03-30')).toEqual({ keys: ['2025-03-29'], missing: [] })
    expect(upstream(before, days, days, '2025-03-28')).toEqual({ keys: [], missing: [] })
    expect(downstream(before, days, days, '2025-03-28')).toEqual(['2025-03-29'])
    const long = setOf({ type: 'daily', start: '2025-01-01' })
    expect(upstream(before, days, long, '2025-03-28').keys).toEqual(['2025-03-27'])
  })

  test('all windows up to it or from it on, however far an offset reaches', () => {
    const months = setOf({ type: 'monthly', start: '2024-12' })
    const far = (start_offset: number, end_offset: number) => ({ type: 'time_window', start_offset, end_offset })
    expect(upstream(far(-10_000, 0), months, months, '2025-02')).toEqual({
      keys: ['2024-12', '2025-01', '2025-02'],
      missing: [],
    })
    expect(upstream(far(0, 10_000), months, months, '2025-02')).toEqual({ keys: ['2025-02', '2025-03'], missing: [] })
    expect(upstream(far(-10_000, -9_000), months, months, '2025-02')).toEqual({ keys: [], missing: [] })
    expect(upstream(far(9_000, 10_000), months, months, '2025-02')).toEqual({ keys: [], missing: [] })
    const older = setOf({ type: 'yearly', start: '1950' })
    expect(upstream(far(-10_000, -1), months, older, '2024-12').keys).toHaveLength(75)
    expect(downstream(far(-10_000, 0), months, older, '1950')).toEqual(['2024-12', '2025-01', '2025-02', '2025-03'])
    const oldest = setOf({ type: 'yearly', start: '1901' })
    expect(downstream({ type: 'time_window' }, months, oldest, '1901')).toEqual([])
    expect(upstream(far(-10_000, 0), oldest, oldest, '1902').keys).toEqual(['1901', '1902'])
    const newest = setOf({ type: 'yearly', start: '2190', end_offset: 10_000 })
    expect(newest.count).toBe(9)
    expect(newest.at(8)).toBe('2198')
    expect(upstream(far(0, 10_000), newest, newest, '2197').keys).toEqual(['2197', '2198'])
    expect(upstream(far(-1, -1), newest, newest, '2197').keys).toEqual(['2196'])
  })

  test('the windows that overlap it, of which some may not have closed or never existed', () => {
    const overlap = { type: 'time_window' }
    const day = upstream(overlap, days, hours, '2025-03-30')
    expect([day.keys.length, day.keys[0], day.keys[23]]).toEqual([24, '2025-03-30T00', '2025-03-30T23'])
    const early = setOf({ type: 'daily', start: '2025-03-27' })
    expect(upstream(overlap, early, hours, '2025-03-27')).toMatchObject({
      keys: [],
      missing: { length: 24, 0: '2025-03-27T00' },
    })
    expect(upstream(overlap, hours, days, '2025-04-02T11')).toEqual({ keys: [], missing: ['2025-04-02'] })
  })

  test('every one, the last one, or certain ones', () => {
    expect(upstream({ type: 'all' }, days, regions, '2025-03-30').keys).toEqual(['eu', 'us'])
    expect(upstream({ type: 'last' }, regions, days, 'eu').keys).toEqual(['2025-04-01'])
    expect(upstream({ type: 'last' }, regions, market, 'eu').keys).toEqual(['date=2025-04-01,region=us'])
    expect(upstream({ type: 'last' }, regions, setOf({ type: 'dynamic', name: 'none' }), 'eu')).toEqual({
      keys: [],
      missing: [],
    })
    const certain = { type: 'specific', keys: ['ada', 'zoe'] }
    expect(upstream(certain, regions, customers, 'eu')).toEqual({ keys: ['ada'], missing: ['zoe'] })
    expect(downstream(certain, regions, customers, 'ada')).toEqual(['eu', 'us'])
    expect(downstream(certain, regions, customers, 'bob')).toEqual([])
  })

  test('those that a table says', () => {
    const table = { type: 'static', keys: { ada: 'eu', bob: ['eu', 'us'], zoe: 'us', constructor: 'us' } }
    expect(upstream(table, regions, customers, 'eu')).toEqual({ keys: ['ada', 'bob'], missing: [] })
    expect(upstream(table, regions, customers, 'us')).toEqual({ keys: ['bob'], missing: ['zoe', 'constructor'] })
    expect(downstream(table, regions, customers, 'bob')).toEqual(['eu', 'us'])
    expect(downstream(table, regions, customers, 'eve')).toEqual([])
  })

  test('all that share its value in one dimension', () => {
    const byDate = { type: 'dimension', dimension: 'date' }
    expect(upstream(byDate, days, market, '2025-03-30').keys).toEqual([
      'date=2025-03-30,region=eu',
      'date=2025-03-30,region=us',
    ])
    expect(downstream(byDate, days, market, 'date=2025-03-30,region=eu')).toEqual(['2025-03-30'])
    expect(upstream(byDate, market, days, 'date=2025-03-30,region=eu').keys).toEqual(['2025-03-30'])
    expect(downstream(byDate, market, days, '2025-03-30')).toEqual(['date=2025-03-30,region=eu', 'date=2025-03-30,region=us'])
  })

  test('the windows that overlap in the dimension it follows, when nothing more was said', () => {
    const hourly = multi({ date: hours, region: regions })
    const found = upstream(
      { type: 'multi', dimensions: { date: { dimension: 'date' } } },
      market,
      hourly,
      'date=2025-03-30,region=eu',
    )
    expect([found.keys.length, found.keys[0]]).toEqual([48, 'date=2025-03-30T00,region=eu'])
    expect(upstream({ type: 'dimension', dimension: 'date' }, days, hourly, '2025-03-30').keys).toEqual(found.keys)
  })

  test('the product of what each dimension is made of, and misses each combination once', () => {
    const above = multi({
      day: setOf({ type: 'daily', start: '2025-03-29' }),
      place: setOf({ type: 'keys', keys: ['eu'] }),
      shop: regions,
    })
    const mapping = {
      type: 'multi',
      dimensions: { day: { dimension: 'date', mapping: { type: 'time_window' } }, place: { dimension: 'region' } },
    }
    expect(upstream(mapping, market, above, 'date=2025-03-29,region=eu')).toEqual({
      keys: ['day=2025-03-29,place=eu,shop=eu', 'day=2025-03-29,place=eu,shop=us'],
      missing: [],
    })
    const { keys, missing } = upstream(mapping, market, above, 'date=2025-03-28,region=us')
    expect(keys).toEqual([])
    expect(missing.sort()).toEqual(['day=2025-03-28,place=us,shop=eu', 'day=2025-03-28,place=us,shop=us'])
  })

  test('an asset without partitions as a whole, and such an asset of all, the last or certain ones', () => {
    expect(upstream({ type: 'identity' }, days, whole, '2025-03-30')).toEqual({ keys: [''], missing: [] })
    expect(downstream({ type: 'identity' }, regions, whole, '')).toEqual(['eu', 'us'])
    expect(upstream({ type: 'all' }, whole, regions, '').keys).toEqual(['eu', 'us'])
    expect(upstream({ type: 'last' }, whole, regions, '').keys).toEqual(['us'])
    expect(downstream({ type: 'last' }, whole, regions, 'us')).toEqual([''])
    expect(downstream({ type: 'last' }, whole, regions, 'eu')).toEqual([])
    expect(() => upstream({ type: 'identity' }, whole, regions, '')).toThrow(expect.objectContaining({ code: 'mapping_kinds' }))
  })

  test('what is carried as edges, not as a list, however many there are', () => {
    const [long, everything] = [setOf({ type: 'hourly', start: '1925-01-01T00' }), multi({ a: customers, b: hours })]
    const { ranges } = upstreamOf({ type: 'all' }, { downstream: regions, upstream: long }, 'eu')
    expect(ranges.map(({ count, spans }) => [count, spans.map(({ list }) => list.length)])).toEqual([[878_796, [1]]])
    const product = upstreamOf({ type: 'all' }, { downstream: regions, upstream: everything }, 'eu').ranges
    expect(product.map(({ spans }) => spans.map(({ list }) => list.length))).toEqual([[1, 1]])
  })

  test('nothing known when it does not exist itself', () => {
    expect(() => upstream({ type: 'all' }, days, regions, '2025-04-02')).toThrow(
      expect.objectContaining({ code: 'no_such_partition', kind: 'not_found' }),
    )
    expect(() => downstream({ type: 'all' }, days, regions, 'mars')).toThrow(
      expect.objectContaining({ code: 'no_such_partition' }),
    )
  })

  test('windows of its own time zone only', () => {
    const paris = setOf({ type: 'daily', start: '2025-03-28', timezone: 'Europe/Paris' })
    expect(() => upstream({ type: 'time_window' }, days, paris, '2025-03-30')).toThrow(
      expect.objectContaining({ code: 'mapping_zones' }),
    )
    const utc = setOf({ type: 'daily', start: '2025-03-28', timezone: 'Etc/UTC' })
    expect(upstream({ type: 'time_window' }, days, utc, '2025-03-30').keys).toEqual(['2025-03-30'])
  })
})

describe('[P4] a mapping and its inverse', () => {
  /** Both changes of 2025 in the zone: days of 23 and 25 hours, hours that are skipped and repeated. */
  const spring = { start: '2025-03-28', now: '2025-04-02T12:00:00.000Z', months: '2025-01' }
  const autumn = { start: '2025-10-24', now: '2025-10-29T12:00:00.000Z', months: '2025-08' }
  const zone = fc.constantFrom('UTC', 'Europe/Paris', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu')

  const timeSets = fc
    .record({
      season: fc.constantFrom(spring, autumn),
      timezone: zone,
      types: fc.tuple(...[0, 1].map(() => fc.constantFrom('hourly', 'daily', 'weekly', 'monthly', 'six', 'excluding'))),
      end_offset: fc.integer({ min: -1, max: 2 }),
    })
    .map(({ season, timezone, types, end_offset }) =>
      types.map((type, i) => {
        const options = { timezone, ...(i === 0 ? { end_offset } : {}) }
        const start = i === 0 ? season.start : season.start.replace(/\d$/, '5')
        if (type === 'six')
          return setOf({ type: 'cron', cron: '30 */6 * * *', start, format: '%Y-%m-%d %H:%M', ...options }, season.now)
        if (type === 'excluding') return setOf({ type: 'daily', start, exclusions: ['0 0 * * 0'], ...options }, season.now)
        if (type === 'monthly') return setOf({ type, start: season.months, ...options }, season.now)
        return setOf({ type, start: type === 'hourly' ? `${start}T00` : start, ...options }, season.now)
      }),
    )

  function expectToAgree(mapping: object, below: PartitionSet, above: PartitionSet): void {
    const parsed = partitionMapping.parse(mapping)
    const sets = { downstream: below, upstream: above }
    const forward = new Map([...below.keys()].map((key) => [key, new Set(list(upstreamOf(parsed, sets, key).ranges))]))
    for (const key of above.keys()) {
      const expected = [...below.keys()].filter((downstreamKey) => forward.get(downstreamKey)?.has(key))
      expect(list(downstreamOf(parsed, sets, key)), key).toEqual(expected)
    }
    // What is missing does not exist, and nothing is missing twice.
    for (const key of below.keys()) {
      const missing = [...keysOf(upstreamOf(parsed, sets, key).missing)]
      expect(missing.filter((it) => above.has(it))).toEqual([])
      expect(new Set(missing).size).toBe(missing.length)
    }
  }

  test('agree for windows of any length, zone and offset', () => {
    const offsets = fc.tuple(fc.integer({ min: -3, max: 3 }), fc.integer({ min: 0, max: 2 }))
    fc.assert(
      fc.property(timeSets, offsets, (sets, [start_offset, length]) => {
        const [below, above] = sets as [PartitionSet, PartitionSet]
        expectToAgree({ type: 'time_window', start_offset, end_offset: start_offset + length }, below, above)
      }),
      { numRuns: 60 },
    )
  })

  const letters = ['a', 'b', 'c', 'd=,%']
  const keyed = fc.subarray(letters, { minLength: 1 }).map((keys) => setOf({ type: 'keys', keys }))
  const simple = fc.oneof(
    fc.constantFrom({ type: 'identity' }, { type: 'all' }, { type: 'last' }),
    fc.subarray(letters, { minLength: 1 }).map((keys) => ({ type: 'specific', keys })),
    fc
      .dictionary(fc.constantFrom(...letters), fc.oneof(fc.constantFrom(...letters), fc.subarray(letters)))
      .map((keys) => ({ type: 'static', keys })),
  )

  test('agree for keys', () => {
    fc.assert(fc.property(simple, keyed, keyed, (mapping, below, above) => expectToAgree(mapping, below, above)))
  })

  test('agree for products of dimensions', () => {
    const names = ['x', 'y', 'z']
    const dimensioned = fc.dictionary(fc.constantFrom(...names), keyed, { minKeys: 3, maxKeys: 3 }).map(multi)
    const links = fc.dictionary(fc.constantFrom(...names), fc.record({ dimension: fc.constantFrom(...names), mapping: simple }))
    fc.assert(
      fc.property(links, dimensioned, dimensioned, (dimensions, below, above) =>
        expectToAgree({ type: 'multi', dimensions }, below, above),
      ),
      { numRuns: 60 },
    )
  })

  test('agree between a product and one of its dimensions, whichever is upstream', () => {
    const product = fc.record({ x: keyed, y: keyed }).map(multi)
    fc.assert(
      fc.property(simple, product, keyed, fc.boolean(), (mapping, several, one, down) => {
        const [below, above] = down ? [several, one] : [one, several]
        expectToAgree({ type: 'dimension', dimension: 'y', mapping }, below, above)
      }),
    )
  })

  test('agree for products as wholes', () => {
    const product = fc.record({ x: keyed, y: keyed }).map(multi)
    fc.assert(
      fc.property(fc.constantFrom('identity', 'all', 'last'), product, product, (type, below, above) =>
        expectToAgree({ type }, below, above),
      ),
    )
  })
})
