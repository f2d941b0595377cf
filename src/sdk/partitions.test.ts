import { describe, expect, test } from 'vitest'
import { dimensionsOf, openPartition, partitionText } from './partition-key.ts'
import { type AnyPartitions, daily, dynamic, hourly, keys, monthly, multi, weekly } from './partitions.ts'

const accepts = (partitions: AnyPartitions, key: unknown): boolean => partitions.key.safeParse(key).success

describe('the key of a partition', () => {
  test.each([
    [daily({ start: '2025-01-01' }), ['2025-01-15', '2024-02-29'], ['2025-02-29', '2025-1-5', '2025-01-15T00', '', 7]],
    [hourly({ start: '2025-01-01T00' }), ['2025-01-15T09'], ['2025-01-15T24', '2025-01-15', '2025-01-15T9']],
    [weekly({ start: '2025-01-06' }), ['2025-01-13', '2024-12-30'], ['2025-01-14', '2025-W03']],
    [monthly({ start: '2025-01' }), ['2025-12'], ['2025-13', '2025-1', '2025-01-01']],
    [keys(['eu', 'us']), ['eu'], ['mars', '']],
    [dynamic('customers'), ['anything at all'], ['']],
  ])('is one of its kind: $data.type', (partitions, good, bad) => {
    expect(good.filter((key) => !accepts(partitions, key))).toEqual([])
    expect(bad.filter((key) => accepts(partitions, key))).toEqual([])
  })

  test('of several dimensions has all of them and no other', () => {
    const market = multi({ day: daily({ start: '2025-01-01' }), region: keys(['eu', 'us']) })
    expect(accepts(market, { day: '2025-01-15', region: 'eu' })).toBe(true)
    expect(accepts(market, { day: '2025-01-15' })).toBe(false)
    expect(accepts(market, { day: '2025-01-15', region: 'eu', shop: 'x' })).toBe(false)
  })

  test('is one text however its dimensions were ordered, and can be read back whatever is in it', () => {
    const values = { region: 'a=b,c', day: '2025-01-15', '%': 'ü' }
    const { key } = partitionText(values)
    expect(key).toBe('%25=%C3%BC,day=2025-01-15,region=a%3Db%2Cc')
    expect(partitionText({ day: '2025-01-15', '%': 'ü', region: 'a=b,c' }).key).toBe(key)
    expect(dimensionsOf(key)).toEqual(values)
  })

  test('that the definition does not have is refused where it is opened', () => {
    expect(() => openPartition(keys(['eu']), { key: 'mars' })).toThrow(expect.objectContaining({ code: 'bad_partition' }))
  })
})

describe('the window of a partition', () => {
  const windowOf = (partitions: AnyPartitions, key: string): string[] => {
    const { start, end } = openPartition(partitions, { key }).window as { start: Date; end: Date }
    return [start.toISOString(), end.toISOString()]
  }
  const paris = { timezone: 'Europe/Paris' }

  test.each([
    ['a day', daily({ start: '2025-01-01', ...paris }), '2025-01-15', '2025-01-14T23:00', '2025-01-15T23:00'],
    ['a day of 23 hours', daily({ start: '2025-01-01', ...paris }), '2025-03-30', '2025-03-29T23:00', '2025-03-30T22:00'],
    ['a day of 25 hours', daily({ start: '2025-01-01', ...paris }), '2025-10-26', '2025-10-25T22:00', '2025-10-26T23:00'],
    [
      'an hour that is repeated',
      hourly({ start: '2025-01-01T00', ...paris }),
      '2025-10-26T02',
      '2025-10-26T00:00',
      '2025-10-26T02:00',
    ],
    [
      'an hour that is left out',
      hourly({ start: '2025-01-01T00', ...paris }),
      '2025-03-30T02',
      '2025-03-30T01:00',
      '2025-03-30T01:00',
    ],
    [
      'a day without midnight',
      daily({ start: '2018-01-01', timezone: 'America/Sao_Paulo' }),
      '2018-11-04',
      '2018-11-04T03:00',
      '2018-11-05T02:00',
    ],
    ['a week', weekly({ start: '2025-01-06' }), '2025-01-13', '2025-01-13T00:00', '2025-01-20T00:00'],
    ['the last month of a year', monthly({ start: '2025-01' }), '2025-12', '2025-12-01T00:00', '2026-01-01T00:00'],
    [
      'a day half an hour off',
      daily({ start: '2025-01-01', timezone: 'Asia/Kolkata' }),
      '2025-01-15',
      '2025-01-14T18:30',
      '2025-01-15T18:30',
    ],
  ])('is %s', (_, partitions, key, start, end) => {
    expect(windowOf(partitions, key)).toEqual([`${start}:00.000Z`, `${end}:00.000Z`])
  })

  test('begins where the one before ends, all through the years', () => {
    for (const timezone of ['Europe/Paris', 'America/Sao_Paulo', 'Australia/Lord_Howe', 'Pacific/Apia', 'UTC']) {
      const partitions = daily({ start: '2010-01-01', timezone })
      let last = ''
      for (let at = Date.UTC(2010, 11, 1); at < Date.UTC(2013, 0, 1); at += 86_400_000) {
        const [start, end] = windowOf(partitions, new Date(at).toISOString().slice(0, 10))
        if (last !== '') expect(`${timezone} ${start}`).toBe(`${timezone} ${last}`)
        last = end ?? ''
      }
    }
  })

  test('there is one for each dimension of time and none for the others', () => {
    const market = multi({ day: daily({ start: '2025-01-01' }), region: keys(['eu']) })
    expect(openPartition(market, { key: 'day=2025-01-15,region=eu' })).toEqual({
      key: { day: '2025-01-15', region: 'eu' },
      window: { day: { start: new Date('2025-01-15'), end: new Date('2025-01-16') }, region: undefined },
    })
  })
})
