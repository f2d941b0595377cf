import { describe, expect, test } from 'vitest'
import { openPartition, partitionText, valuesOfDimensions } from './partition-key.ts'
import {
  type AnyPartitions,
  cronWindows,
  daily,
  dynamic,
  hourly,
  keys,
  minutely,
  monthly,
  multi,
  quarterly,
  weekly,
  yearly,
} from './partitions.ts'

const accepts = (partitions: AnyPartitions, key: unknown): boolean => partitions.key.safeParse(key).success

describe('the key of a partition', () => {
  test.each([
    [
      daily({ start: '2025-01-01' }),
      ['2025-01-15', '2028-02-29'],
      ['2025-02-29', '2024-12-31', '2025-1-5', '2025-01-15T00', '', 7],
    ],
    [hourly({ start: '2025-01-01T00' }), ['2025-01-15T09'], ['2025-01-15T24', '2025-01-15', '2025-01-15T9']],
    [weekly({ start: '2025-01-06' }), ['2025-01-13', '2026-12-28'], ['2025-01-14', '2024-12-30', '2025-W03']],
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
    expect(valuesOfDimensions(key)).toEqual(values)
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
      'an hour that clocks show twice, the first time',
      hourly({ start: '2025-01-01T00', ...paris }),
      '2025-10-26T02',
      '2025-10-26T00:00',
      '2025-10-26T01:00',
    ],
    [
      'an hour that clocks show twice, the second time',
      hourly({ start: '2025-01-01T00', ...paris }),
      '2025-10-26T02+0100',
      '2025-10-26T01:00',
      '2025-10-26T02:00',
    ],
    [
      'five minutes',
      minutely({ start: '2025-01-01T00:00', every: 5 }),
      '2025-01-01T00:05',
      '2025-01-01T00:05',
      '2025-01-01T00:10',
    ],
    ['a quarter', quarterly({ start: '2025-01' }), '2025-04', '2025-04-01T00:00', '2025-07-01T00:00'],
    ['a year from April on', yearly({ start: '2025', month: 4 }), '2026', '2026-04-01T00:00', '2027-04-01T00:00'],
    ['a day from six to six', daily({ start: '2025-01-01', hour: 6 }), '2025-01-02', '2025-01-02T06:00', '2025-01-03T06:00'],
    [
      'a day with a key of its own kind',
      daily({ start: '01.01.2025', format: '%d.%m.%Y' }),
      '31.12.2025',
      '2025-12-31T00:00',
      '2026-01-01T00:00',
    ],
    [
      'from one tick to the next',
      cronWindows('0 6 * * MON-FRI', { start: '2025-01-06T06:00' }),
      '2025-01-10T06:00',
      '2025-01-10T06:00',
      '2025-01-13T06:00',
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
        const key = new Date(at).toISOString().slice(0, 10)
        // In Samoa there was no 30 December 2011.
        if (!accepts(partitions, key)) continue
        const [start, end] = windowOf(partitions, key)
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

describe('a definition that cannot be meant is refused where it is written', () => {
  test.each<[string, () => unknown, string, RegExp]>([
    [
      'an hour that clocks jump over',
      () => hourly({ start: '2025-03-30T02', timezone: 'Europe/Paris' }),
      'bad_window',
      /no window/,
    ],
    [
      'a start between windows',
      () => weekly({ start: '2025-01-07', weekday: 1 }),
      'bad_window',
      /`start` of weekly\(\) is "2025-01-07", but no window has that key/,
    ],
    ['a start that is not a date', () => daily({ start: '2025-02-30' }), 'bad_window', /start/],
    ['an end before the start', () => daily({ start: '2025-01-02', end: '2025-01-01' }), 'bad_window', /is after `end`/],
    [
      'an offset as zone',
      () => daily({ start: '2025-01-01', timezone: '+05:30' }),
      'bad_timezone',
      /"\+05:30" is an offset, not a time zone/,
    ],
    ['an unknown zone', () => daily({ start: '2025-01-01', timezone: 'Mars/Olympus' }), 'bad_timezone', /Mars\/Olympus/],
    [
      'a key that means all',
      () => keys(['eu', '*']),
      'bad_keys',
      /keys\(\) cannot contain "\*": it must not be \*, which stands for all partitions/,
    ],
    ['a key that means a range', () => keys(['a..b']), 'bad_keys', /stands between the ends of a range/],
    ['keys too coarse', () => hourly({ start: '2025-01-01', format: '%Y-%m-%d' }), 'bad_key_format', /too coarse/],
    ['keys that would read as two dimensions', () => daily({ start: '01,01,2025', format: '%d,%m,%Y' }), 'bad_key_format', /./],
    ['minutes that do not fill an hour', () => minutely({ start: '2025-01-01T00:00', every: 7 }), 'bad_window', /7 minutes/],
    ['a cron that never fires', () => cronWindows('0 0 30 2 *', { start: '2025-01-01T00:00' }), 'bad_cron', /./],
    [
      'a hundred windows in advance and a half',
      () => daily({ start: '2025-01-01', endOffset: 100.5 }),
      'bad_window',
      /endOffset/,
    ],
  ])('%s', (_, make, code, message) => {
    expect(make).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }))
  })
})

test('a key that is no key of a window says why: how to write it, no date, too early, or no window', () => {
  const { key: day } = daily({ start: '2026-11-01', exclusions: ['2026-11-03'] })
  const why = (text: string) => day.safeParse(text).error?.issues[0]?.message
  expect(why('2026-13-11')).toBe('2026-13-11 is not a date')
  expect(why('2026-02-30')).toBe('2026-02-30 is not a date')
  expect(why('11.11.2026')).toBe('must look like 2025-01-15')
  expect(why('2026-10-31')).toBe('2026-10-31 is before the first window, 2026-11-01')
  expect(why('2026-11-03')).toBe('no window has the key 2026-11-03')
  expect(monthly({ start: '2026-01' }).key.safeParse('2026-13').error?.issues[0]?.message).toBe('2026-13 is not a date')
})
