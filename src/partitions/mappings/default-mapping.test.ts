import { describe, expect, test } from 'vitest'
import { partitionDefinition } from '../definition.ts'
import { checkMapping } from './check-mapping.ts'
import { defaultMapping } from './default-mapping.ts'
import { partitionMapping } from './mapping.ts'

const define = (definition: unknown) => partitionDefinition.parse(definition)
const days = define({ type: 'daily', start: '2025-01-01' })
const hours = define({ type: 'hourly', start: '2025-01-01T00' })
const paris = define({ type: 'daily', start: '2025-01-01', timezone: 'Europe/Paris' })
const regions = define({ type: 'keys', keys: ['eu', 'us'] })
const more = define({ type: 'keys', keys: ['eu', 'us', 'asia'] })
const customers = define({ type: 'dynamic', name: 'customers' })
const multi = (dimensions: object) => define({ type: 'multi', dimensions })
const market = multi({ date: days, region: regions })

const identity = { type: 'identity' }
const overlap = { type: 'time_window', start_offset: 0, end_offset: 0 }

describe('a dependency of which nobody said how it maps', () => {
  test.each([
    ['equal definitions', days, define({ ...days, end: null }), identity],
    ['an upstream asset without partitions', days, undefined, { type: 'all' }],
    ['a downstream asset without partitions', undefined, days, { type: 'all' }],
    ['windows of one zone', days, hours, overlap],
    ['windows of one zone by two names', days, define({ ...hours, timezone: 'Etc/UTC' }), overlap],
    ['a product and one of its dimensions', market, regions, { type: 'dimension', dimension: 'region', mapping: identity }],
    ['one dimension and the product of it', days, market, { type: 'dimension', dimension: 'date', mapping: identity }],
    [
      'other windows than those of the only time dimension',
      hours,
      market,
      { type: 'dimension', dimension: 'date', mapping: overlap },
    ],
    [
      'products that share dimensions',
      market,
      multi({ date: hours, region: more, customer: customers }),
      {
        type: 'multi',
        dimensions: { date: { dimension: 'date', mapping: overlap }, region: { dimension: 'region', mapping: identity } },
      },
    ],
    [
      'products whose namesakes are of other kinds: these are taken whole',
      market,
      multi({ date: days, region: customers }),
      { type: 'multi', dimensions: { date: { dimension: 'date', mapping: identity } } },
    ],
  ])('is guessed for %s', (_, downstream, upstream, mapping) => {
    expect(defaultMapping(downstream, upstream)).toEqual({ mapping })
  })

  test.each([
    [days, paris, 'windows in UTC and in Europe/Paris begin at different times (mapping_zones)'],
    [days, regions, 'it is partitioned by day and the upstream asset by keys: say how they map'],
    [regions, more, 'it is partitioned by keys and the upstream asset by keys: say how they map'],
    [multi({ a: regions, b: regions }), regions, 'a and b are both defined like the keys partitions: say which'],
    [market, customers, 'none of date, region is defined like the dynamic partitions'],
    [market, paris, 'dimension date has a different time zone from the daily partitions (mapping_zones)'],
    [
      market,
      multi({ date: paris, region: regions }),
      'dimension date has different time zones downstream and upstream (mapping_zones)',
    ],
    [market, multi({ shop: regions, customer: customers }), 'date, region and customer, shop have no dimension in common'],
  ])('is not guessed, with the reason: %#', (downstream, upstream, reason) => {
    expect(defaultMapping(downstream, upstream)).toEqual({ reason })
  })
})

describe('a mapping that cannot work is told at once', () => {
  test.each([
    ['between zones', overlap, days, paris, 'mapping_zones'],
    ['with offsets between keys', { ...overlap, start_offset: -1 }, regions, regions, 'mapping_kinds'],
    ['whose start is after its end', { ...overlap, start_offset: 1 }, days, hours, 'mapping_offsets'],
    ['of the same key when keys are written differently', identity, days, hours, 'mapping_kinds'],
    ['of the same key between other dimensions', identity, market, days, 'mapping_kinds'],
    ['of the same key when upstream does not have it', identity, more, regions, 'mapping_keys'],
    ['by a dimension that is not there', { type: 'dimension', dimension: 'shop' }, market, regions, 'mapping_dimension'],
    ['by a dimension where there are none', { type: 'dimension', dimension: 'date' }, days, days, 'mapping_kinds'],
    [
      'from an upstream dimension that is not there',
      { type: 'multi', dimensions: { shop: { dimension: 'date' } } },
      market,
      market,
      'mapping_dimension',
    ],
    [
      'to a downstream dimension that is not there',
      { type: 'multi', dimensions: { date: { dimension: 'shop' } } },
      market,
      market,
      'mapping_dimension',
    ],
    [
      'between dimensions that do not fit',
      { type: 'multi', dimensions: { date: { dimension: 'region', mapping: overlap } } },
      market,
      market,
      'mapping_kinds',
    ],
    ['of several dimensions where there is one', { type: 'multi', dimensions: {} }, market, days, 'mapping_kinds'],
    [
      'by a table with upstream keys that are not there',
      { type: 'static', keys: { mars: 'eu' } },
      regions,
      regions,
      'mapping_keys',
    ],
    [
      'by a table with downstream keys that are not there',
      { type: 'static', keys: { eu: ['us', 'mars'] } },
      regions,
      regions,
      'mapping_keys',
    ],
    ['to certain keys that are not there', { type: 'specific', keys: ['2024-12-31'] }, regions, days, 'mapping_keys'],
    [
      'to keys whose dimensions are in another order',
      { type: 'specific', keys: ['region=eu,date=2025-01-01'] },
      regions,
      market,
      'mapping_keys',
    ],
    ['to a key of other dimensions', { type: 'specific', keys: ['eu'] }, regions, market, 'mapping_keys'],
    ['by identity of an asset without partitions', identity, undefined, days, 'mapping_kinds'],
  ])('%s', (_, mapping, downstream, upstream, code) => {
    const problems = checkMapping(partitionMapping.parse(mapping), downstream, upstream)
    expect(problems.map((problem) => problem.code)).toEqual([code])
    expect(problems.every(({ message, hint }) => message !== '' && hint !== '')).toBe(true)
  })

  test('and one that can has no problems', () => {
    expect(checkMapping(partitionMapping.parse({ type: 'static', keys: { eu: 'us', us: ['eu'] } }), regions, regions)).toEqual(
      [],
    )
    expect(checkMapping(partitionMapping.parse({ type: 'specific', keys: ['2025-01-01'] }), undefined, days)).toEqual([])
    expect(
      checkMapping(partitionMapping.parse({ type: 'specific', keys: ['date=2025-01-01,region=eu'] }), days, market),
    ).toEqual([])
    expect(
      checkMapping(partitionMapping.parse({ type: 'dimension', dimension: 'date', mapping: overlap }), hours, market),
    ).toEqual([])
    expect(checkMapping(partitionMapping.parse(overlap), days, undefined)).toEqual([])
    for (const upstream of [days, hours, market, regions, undefined]) {
      const { mapping } = defaultMapping(market, upstream)
      if (mapping !== undefined) expect(checkMapping(mapping, market, upstream)).toEqual([])
    }
  })

  test('and says which dimension and what to do', () => {
    const mapping = partitionMapping.parse({ type: 'multi', dimensions: { date: { dimension: 'date', mapping: overlap } } })
    expect(checkMapping(mapping, market, multi({ date: paris }))).toEqual([
      {
        code: 'mapping_zones',
        message: 'Dimension date: Windows in UTC cannot be made of windows in Europe/Paris: they begin at different times',
        hint: 'Give both assets the same time zone, or use identity to pair windows of the same key.',
      },
    ])
  })
})
