import { describe, expect, test } from 'vitest'
import { partitionDefinition } from './definition.ts'
import { type KeyTexts, keyPositions } from './key-positions.ts'
import { type PartitionSet, partitionSet } from './partition-set.ts'

const setOf = (definition: object, dynamic: string[] = []): PartitionSet =>
  partitionSet(partitionDefinition.parse(definition), {
    nowMs: Date.UTC(2025, 5, 1),
    dynamicKeys: () => dynamic,
  })

/** As a file has them: one after the other, each after its length. */
function texts(keys: readonly string[]): KeyTexts {
  const bytes = Buffer.concat(keys.flatMap((key) => [Buffer.alloc(4), Buffer.from(key)]))
  const starts = new Uint32Array(keys.length + 1)
  let at = 4
  for (const [i, key] of keys.entries()) {
    starts[i] = at
    at += 4 + Buffer.byteLength(key)
  }
  starts[keys.length] = at
  return { at: (row) => keys[row] as string, raw: { bytes, starts } }
}

const found = (set: PartitionSet, keys: readonly string[]): number[] => [
  ...keyPositions(set, false).of(texts(keys), 0, keys.length),
]
const expected = (set: PartitionSet, keys: readonly string[]): number[] => keys.map((key) => set.positionOf(key) ?? -1)

const hours = { type: 'hourly', start: '2025-01-01T00', timezone: 'Europe/Berlin' }

describe('positions of many keys at once', () => {
  test('are those of each key, with hours that clocks skip and show twice', () => {
    const set = setOf({ ...hours, start: '2024-10-01T00' })
    const keys = [...set.keys()].sort()
    expect(found(set, keys)).toEqual(expected(set, keys))
  })

  test('with gaps, and with keys that the set does not have', () => {
    const set = setOf(hours)
    const keys = [...set.keys()].filter((_, i) => i % 97 !== 5 && !(i > 300 && i < 420))
    keys.push('2025-01-02', '2025-01-03T7', 'never', '2031-01-01T00')
    keys.sort()
    expect(found(set, keys)).toEqual(expected(set, keys))
    expect(found(set, keys).filter((position) => position < 0)).toHaveLength(4)
  })

  test('with keys of a finer definition in the place of missing ones', () => {
    const set = setOf({ type: 'cron', cron: '*/10 * * * *', start: '2025-05-01T00:00', timezone: 'UTC' })
    const keys = [...set.keys()].map((key, i) => (i % 50 === 20 ? key.replace(/0$/, '5') : key)).sort()
    expect(found(set, keys)).toEqual(expected(set, keys))
  })

  test.each([
    { type: 'minutely', start: '2025-04-29T22:30', timezone: 'UTC' },
    { type: 'minutely', start: '2025-04-29T22:30', timezone: 'UTC', every: 5 },
    { type: 'hourly', start: '2024-02-27T00', timezone: 'UTC' },
    { type: 'hourly', start: '2024-12-30T00:15', timezone: 'UTC', minute: 15 },
    { type: 'hourly', start: '2025-02-27T00', timezone: 'UTC', exclusions: ['0 3 * * *'] },
    { type: 'daily', start: '2024-01-31', timezone: 'UTC' },
    { type: 'daily', start: '2024-01-31', timezone: 'UTC', hour: 6 },
    { type: 'daily', start: '2024-01-31', end: '2025-01-01', timezone: 'Europe/London' },
    { type: 'weekly', start: '2024-01-31', timezone: 'UTC' },
  ])('far apart, before the first, after the last, and on days that there are not: %j', (definition) => {
    const set = setOf(definition)
    const before = ['2000-01-01', '2000-01-01T00', '2000-01-01T00:00', '2100-12-31', '2100-12-31T23', '2100-12-31T23:59']
    const days = ['2024-02-30', '2025-02-29', '2024-04-31', '2025-00-10', '2025-13-01', '2025-01-00', '2025-1-1', '2025-05-01T']
    const times = days.flatMap((day) => [`${day}T00`, `${day}T00:15`, `${day}T24`, `${day}T23:60`])
    const wrong = ['2025-05-01T24', '2025-05-01T23:60', '2025-05-01T-1', '2025-05-01 10', '2025-05-01T10-15', '20250501T10:15']
    const some = [...set.keys()].filter((_, i) => i % 7 === 3 || i % 11 === 0 || i < 3)
    const keys = [...new Set([...some, ...before, ...days, ...times, ...wrong])].sort()
    expect(found(set, keys)).toEqual(expected(set, keys))
  })

  test('where texts do not sort as windows do', () => {
    const set = setOf({ type: 'daily', start: '01-01-2025', timezone: 'UTC', format: '%d-%m-%Y' })
    const keys = [...set.keys()].sort()
    expect(found(set, keys)).toEqual(expected(set, keys))
  })

  test('of lists, and of several dimensions with keys of an earlier definition among them', () => {
    const list = setOf({ type: 'keys', keys: ['b', 'a', 'c'] })
    expect(found(list, ['a', 'b', 'c', 'd'])).toEqual([1, 0, 2, -1])
    const multi = setOf({
      type: 'multi',
      dimensions: {
        date: { type: 'daily', start: '2025-05-01', timezone: 'UTC' },
        region: { type: 'keys', keys: ['us', 'eu'] },
      },
    })
    const keys = [...multi.keys(), '2025-05-02', 'date=2025-05-02', 'date=2025-05-02,shop=x', 'date=%,region=eu'].sort()
    expect(found(multi, keys)).toEqual(
      keys.map((key) => (key.includes('region=') && !key.includes('%') ? multi.positionOf(key) : -1)),
    )
  })

  test('of nothing are nothing', () => {
    expect(found(setOf(hours), [])).toEqual([])
  })
})
