import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toMs } from '../lib/time.ts'
import { daily, dynamic, hourly, keys, monthly, multi, weekly } from '../sdk/partitions/partitions.ts'
import { type PartitionDefinition, partitionDefinition } from './definition.ts'
import { partitionSet } from './partition-set.ts'
import { type TimeDefinition, timeWindows } from './time/windows.ts'

const nowMs = toMs('2025-03-10T12:00:00.000Z')
const customers = ['ada', 'bob', 'eve']
const setOf = (definition: PartitionDefinition | undefined) =>
  partitionSet(definition, { nowMs, dynamicKeys: (name) => (name === 'customers' ? customers : []) })
const define = (definition: unknown) => partitionDefinition.parse(definition)

const days = define({ type: 'daily', start: '2025-03-01' })
const regions = define({ type: 'keys', keys: ['eu', 'us', 'asia'] })
const market = define({ type: 'multi', dimensions: { region: regions, date: days } })

describe('the partitions of an asset', () => {
  test.each([
    daily({ start: '2025-01-01' }),
    hourly({ start: '2025-01-01T00', timezone: 'Europe/Paris' }),
    weekly({ start: '2025-01-06' }),
    monthly({ start: '2025-01', end: '2026-01' }),
    keys(['eu', 'us']),
    dynamic('customers'),
    multi({ day: daily({ start: '2025-01-01' }), customer: dynamic('customers') }),
  ])('are understood as the SDK records them: $data.type', ({ data }) => {
    const definition = define(JSON.parse(JSON.stringify(data)))
    expect(definition).toMatchObject(data)
    expect(setOf(definition).count).toBeGreaterThan(0)
  })

  test.each([
    { type: 'daily', start: '2025-01-01', timezon: 'Europe/Paris' },
    { type: 'keys', keys: ['eu', 'eu'] },
    { type: 'multi', dimensions: {} },
    { type: 'multi', dimensions: { a: { type: 'multi', dimensions: { b: { type: 'keys', keys: ['x'] } } } } },
    { type: 'dynamic' },
    { type: 'fortnightly', start: '2025-01-01' },
  ])('are refused when the definition says what nobody understands: %j', (definition) => {
    expect(partitionDefinition.safeParse(definition).success).toBe(false)
  })

  test('are one part with an empty key when there are none', () => {
    const set = setOf(undefined)
    expect([...set.keys()]).toEqual([''])
    expect(set.positionOf('')).toBe(0)
    expect(set.problemOf('eu')?.code).toBe('other_kind')
  })

  test('of time are the windows that have closed', () => {
    const set = setOf(days)
    expect(set.count).toBe(9)
    expect([...set.keys(7)]).toEqual(['2025-03-08', '2025-03-09'])
    expect(setOf(define({ ...days, end_offset: 1 })).at(9)).toBe('2025-03-10')
  })

  test('of several dimensions are sorted by the first name, the last varying fastest', () => {
    const set = setOf(market)
    expect(set.count).toBe(27)
    expect([...set.keys(2, 5)]).toEqual([
      'date=2025-03-01,region=asia',
      'date=2025-03-02,region=eu',
      'date=2025-03-02,region=us',
    ])
    expect(set.positionOf('region=us,date=2025-03-02')).toBe(4)
  })

  test('have one position each, and the key there leads back to it', () => {
    const dimension = fc.oneof(
      fc
        .integer({ min: 0, max: 4 })
        .map((count) => ({ type: 'keys', keys: Array.from({ length: count }, (_, i) => `k,${i}=%`) })),
      fc.integer({ min: 1, max: 9 }).map((day) => ({ type: 'daily', start: `2025-03-0${day}` })),
      fc.constant({ type: 'dynamic', name: 'customers' }),
    )
    const dimensions = fc.dictionary(fc.constantFrom('a', 'b=', 'Z', 'ü', 'date'), dimension, { minKeys: 1, maxKeys: 4 })
    fc.assert(
      fc.property(dimensions, (dimensions) => {
        const set = setOf(define({ type: 'multi', dimensions }))
        const all = [...set.keys()]
        expect(all).toHaveLength(set.count)
        expect(all.map((key) => set.positionOf(key))).toEqual(all.map((_, position) => position))
        expect(new Set(all).size).toBe(set.count)
        expect(all.filter((key) => !set.has(key) || set.problemOf(key) !== undefined)).toEqual([])
        expect(() => set.at(set.count)).toThrow(RangeError)
        expect(() => set.at(-1)).toThrow(RangeError)
      }),
    )
  })

  test('[P3] cost the same to find at position 999,999 as at position 0', () => {
    let touched = 0
    const list = new Proxy(
      Array.from({ length: 1_000 }, (_, i) => `c${i}`),
      {
        get(target, property, receiver) {
          if (typeof property === 'string' && /^\d+$/.test(property)) touched++
          return Reflect.get(target, property, receiver)
        },
      },
    )
    const counted = (definition: TimeDefinition) => {
      const windows = timeWindows(definition)
      const at = (position: number) => {
        touched++
        return windows.at(position)
      }
      return {
        zone: windows.zone,
        at,
        find: at,
        keys: (from: number, to: number) => windows.keys(from, to),
        last: () => windows.last(),
        count: () => 1_000,
        positionOf: (key: string) => windows.positionOf(key),
        startingBefore: (ms: number) => windows.startingBefore(ms),
      }
    }
    const definition = define({ type: 'multi', dimensions: { customer: { type: 'dynamic', name: 'c' }, day: days } })
    const set = partitionSet(definition, { nowMs, dynamicKeys: () => list, windows: counted })
    expect(set.count).toBe(1_000_000)
    touched = 0
    expect(set.at(999_999)).toBe('customer=c999,day=2027-11-25')
    expect(touched).toBeLessThanOrEqual(4)
    touched = 0
    expect(set.at(0)).toBe('customer=c0,day=2025-03-01')
    expect(touched).toBeLessThanOrEqual(4)
    // The list is gone through once, for all keys that are ever asked for.
    expect(set.positionOf('customer=c0,day=2025-03-01')).toBe(0)
    touched = 0
    expect(set.positionOf('customer=c999,day=2027-11-25')).toBe(999_999)
    expect(touched).toBeLessThanOrEqual(4)
  })

  test('can be too many to have a position', () => {
    const many = { type: 'keys', keys: Array.from({ length: 10_000 }, (_, i) => `${i}`) }
    const dimensions = { a: many, b: many, c: many, d: many }
    expect(() => setOf(define({ type: 'multi', dimensions }))).toThrow(expect.objectContaining({ code: 'too_many_partitions' }))
  })
})

describe('a partition that does not exist', () => {
  test('exists from the moment that was told, and not a millisecond earlier', () => {
    const zones = fc.constantFrom('UTC', 'Europe/Paris', 'America/New_York')
    const type = fc.constantFrom('hourly', 'daily', 'weekly', 'monthly')
    const exclusions = fc.constantFrom(null, ['0 0 * * 3'])
    const definitions = fc.record({ type, timezone: zones, end_offset: fc.integer({ min: -2, max: 2 }), exclusions })
    fc.assert(
      fc.property(definitions, fc.integer({ min: 0, max: 60 }), (options, ahead) => {
        const definition = define({ ...options, start: options.type === 'monthly' ? '2025-01' : '2025-02-01' })
        const { axis, count, problemOf } = setOf(definition)
        const key = axis?.at(count + ahead).key as string
        const told = /does not exist before (\S+)\. /.exec(problemOf(key)?.message ?? '')?.[1] ?? ''
        const at = (ms: number) => partitionSet(definition, { nowMs: ms, dynamicKeys: () => [] })
        expect([at(Date.parse(told) - 1).has(key), at(Date.parse(told)).has(key)]).toEqual([false, true])
      }),
    )
  })

  const first = 'its partitions run from 2025-03-01 to 2025-03-09'
  test.each([
    [
      days,
      '2025-03-10',
      'not_closed',
      `Partition 2025-03-10 does not exist before 2025-03-11T00:00Z. Existing: 2025-03-01 to 2025-03-09`,
    ],
    [
      define({ type: 'monthly', start: '2195-01' }),
      '2195-05',
      'not_closed',
      'Partition 2195-05 does not exist before 2195-06-01T00:00Z. None exists yet; the first, 2195-01, exists from 2195-02-01T00:00Z',
    ],
    [
      define({ type: 'yearly', start: '2025', end_offset: -10_000 }),
      '2026',
      'not_closed',
      'Partition 2026 never exists. None ever exists',
    ],
    [days, '2025-02-28', 'outside_range', `no partition 2025-02-28; ${first}`],
    [define({ ...days, end: '2025-03-10' }), '2025-03-10', 'outside_range', `no partition 2025-03-10; ${first}`],
    [days, '2025-3-1', 'unknown_key', `no partition 2025-3-1; ${first}`],
    [days, '2025-02-30', 'unknown_key', `no partition 2025-02-30; ${first}`],
    [
      days,
      'date=2025-03-01,region=eu',
      'other_kind',
      `date=2025-03-01,region=eu names dimensions, but these partitions are daily windows; ${first}`,
    ],
    [
      define({ type: 'daily', start: '2025-04-01' }),
      '2025-04-02',
      'not_closed',
      'Partition 2025-04-02 does not exist before 2025-04-03T00:00Z. None exists yet; the first, 2025-04-01, exists from 2025-04-02T00:00Z',
    ],
    [
      define({ ...days, end: '2025-03-01' }),
      '2025-03-01',
      'outside_range',
      'no partition 2025-03-01; its definition ends before its first window does',
    ],
    [regions, 'es', 'unknown_key', 'no partition es; did you mean eu?'],
    [regions, 'mars', 'unknown_key', 'no partition mars; the definition has eu, us, asia'],
    [
      define({ type: 'dynamic', name: 'customers' }),
      'wilhelm',
      'unknown_key',
      'no partition wilhelm; customers has ada, bob, eve',
    ],
    [define({ type: 'dynamic', name: 'none' }), 'zoe', 'unknown_key', 'no partition zoe; none has no keys'],
    [market, 'date=2025-02-28,region=eu', 'outside_range', `dimension date: no partition 2025-02-28; ${first}`],
    [
      market,
      '2025-03-01',
      'other_kind',
      '"2025-03-01" is not a partition key: it is a single key, but these partitions have the dimensions date, region. Write date=…,region=… with percent-encoded values.',
    ],
  ])('says why, and what does: %#', (definition, key, code, message) => {
    expect(setOf(definition).problemOf(key)).toEqual({ code, message })
    expect(setOf(definition).positionOf(key)).toBeUndefined()
  })
})
