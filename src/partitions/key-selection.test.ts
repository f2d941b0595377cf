import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toMs } from '../lib/time.ts'
import { partitionDefinition } from './definition.ts'
import { concat, keysOf } from './key-list.ts'
import { type KeySelection, keySelection, rangesOf, selectionOf } from './key-selection.ts'
import { partitionSet } from './partition-set.ts'

const setOf = (definition: unknown) =>
  partitionSet(partitionDefinition.parse(definition), { nowMs: toMs('2025-03-10T12:00:00.000Z'), dynamicKeys: () => [] })

const dates = { type: 'daily', start: '2025-03-01' }
const days = setOf(dates)
const market = setOf({ type: 'multi', dimensions: { region: { type: 'keys', keys: ['eu', 'us', 'asia'] }, date: dates } })
const selected = (set: typeof days, selection: unknown) => [...keysOf(concat(rangesOf(set, keySelection.parse(selection))))]

describe('a selection of partitions', () => {
  test('is a list of keys and ranges, each partition once', () => {
    expect(
      selected(days, ['2025-03-05', { from: '2025-03-02', to: '2025-03-03' }, '2025-03-03', { from: '2025-03-09' }]),
    ).toEqual(['2025-03-02', '2025-03-03', '2025-03-05', '2025-03-09'])
    expect(selected(days, 'all')).toHaveLength(9)
    expect(selected(days, [])).toEqual([])
  })

  test('of several dimensions is the product of one for each; what is left out is taken whole', () => {
    expect(selected(market, { date: [{ to: '2025-03-02' }], region: ['eu', 'asia'] })).toEqual([
      'date=2025-03-01,region=eu',
      'date=2025-03-01,region=asia',
      'date=2025-03-02,region=eu',
      'date=2025-03-02,region=asia',
    ])
    expect(selected(market, { region: ['eu'], date: 'all' })).toHaveLength(9)
    expect(selected(market, { region: ['eu'] })).toHaveLength(9)
  })

  test('of several dimensions may name single partitions in any spelling', () => {
    expect(selected(market, ['region=eu,date=2025-03-01', 'date=2025-03-01,region=eu'])).toEqual(['date=2025-03-01,region=eu'])
  })

  test('is small however many partitions it has', () => {
    const hours = setOf({ type: 'hourly', start: '1925-01-01T00' })
    const [range] = rangesOf(hours, [{ from: '1926-01-01T00', to: '2024-12-31T23' }])
    expect(range?.count).toBe(867_840)
    expect(range?.at(867_839)).toBe('2024-12-31T23')
    expect(range?.has('2025-01-01T00')).toBe(false)
    expect(selectionOf(range as NonNullable<typeof range>)).toEqual([{ from: '1926-01-01T00', to: '2024-12-31T23' }])
  })

  test('can be frozen: what it holds now, in words that do not grow with the set', () => {
    const [range] = rangesOf(market, { region: ['asia', 'eu'] })
    expect(selectionOf(range as NonNullable<typeof range>)).toEqual({
      date: [{ from: '2025-03-01', to: '2025-03-09' }],
      region: ['eu', 'asia'],
    })
  })

  test('has, counts and picks the same keys, also after it was frozen', () => {
    const day = fc.constantFrom(...days.keys())
    const piece = fc.oneof(
      day,
      fc.tuple(day, day).map(([a, b]) => (a < b ? { from: a, to: b } : { from: b, to: a })),
    )
    const selection = fc.record({ date: fc.array(piece), region: fc.subarray(['eu', 'us', 'asia']) }, { requiredKeys: [] })
    fc.assert(
      fc.property(selection, (selection) => {
        const [range] = rangesOf(market, selection as KeySelection)
        if (range === undefined) throw new Error('a product is one range')
        const keys = [...keysOf(range)]
        expect(keys).toHaveLength(range.count)
        expect([...market.keys()].filter(range.has)).toEqual(keys)
        expect(selected(market, selectionOf(range))).toEqual(keys)
      }),
    )
  })

  test.each([
    [days, { date: ['2025-03-01'] }, 'it names the dimensions date, but these partitions have a single one'],
    [days, [{ from: '2025-03-02', to: '2025-03-01' }], '2025-03-02 comes after 2025-03-01'],
    [market, { shop: ['7'] }, 'unknown dimension `shop`'],
    [market, [{ from: 'a', to: 'b' }], 'a range from one key to another cannot select date and region separately'],
  ])('that means nothing is refused: %#', (set, selection, why) => {
    expect(() => rangesOf(set, selection as KeySelection)).toThrow(
      expect.objectContaining({
        code: 'bad_partition_selection',
        message: expect.stringMatching(`: ${why.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`),
      }),
    )
  })

  test('of a partition that does not exist says which do', () => {
    expect(() => rangesOf(days, ['2025-02-01'])).toThrow(
      expect.objectContaining({
        code: 'no_such_partition',
        message: 'no partition 2025-02-01; its partitions run from 2025-03-01 to 2025-03-09',
      }),
    )
  })
})
