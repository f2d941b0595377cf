import fs from 'node:fs'
import path from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { offsetsOf, Zone } from '../../cron/zone-clocks.ts'
import { DAY_MS, toIso } from '../../lib/time.ts'
import { oddZones } from '../../testing/odd-zones.ts'
import { type TimeUnit, unitDefinition } from './units.ts'
import { type TimeDefinition, type TimeWindows, timeWindows } from './windows.ts'

interface Row {
  name: string
  def: Omit<TimeDefinition, 'start' | 'format'> & {
    fmt: string
    start: string
    end: string | null
    end_offset: number
    exclusions: string[] | null
  }
  now: string
  keys: string[]
  windows: [string, string, number][]
  note?: string
}
const file = path.resolve(import.meta.dirname, '../../../../shared/tables/partition_windows.json')
const rows: Row[] = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : []
if (rows.length === 0) console.warn(`${file} is not there: the windows that Dagster has are not compared.`)

const at = (text: string) => Date.parse(text)
const defined = ({ def }: Row): TimeDefinition => ({
  ...{ cron: def.cron, timezone: def.timezone, format: def.fmt, start: def.start, endOffset: def.end_offset },
  ...(def.end === null ? {} : { end: def.end }),
  ...(def.exclusions === null ? {} : { exclusions: def.exclusions }),
})
const existing = (windows: TimeWindows, now: string) =>
  Array.from({ length: windows.count(at(now)) }, (_, position) => windows.at(position))
const keys = (windows: TimeWindows, now: string) => existing(windows, now).map(({ key }) => key)

describe('what Dagster has', () => {
  test.each(rows.filter(({ note }) => note === undefined).map((row) => [row.name, row] as const))(
    '[shared tables] %s',
    (_, row) => {
      const all = timeWindows(defined(row))
      const windows = existing(all, row.now)
      expect(windows.map(({ key }) => key)).toEqual(row.keys)
      expect([...all.keys(0, windows.length)]).toEqual(row.keys)
      expect(windows.map(({ startMs, endMs }) => [startMs, endMs])).toEqual(
        row.windows.map(([start, end]) => [at(start), at(end)]),
      )
    },
  )

  test.skipIf(rows.length === 0)('[shared tables] is refused where two windows would have one key', () => {
    for (const row of rows.filter(({ note }) => note !== undefined)) {
      expect(() => timeWindows(defined(row))).toThrow(
        'the key format "%Y-%m-%d" is too coarse for 0 0,11 * * *: windows of 2000-01-01T00:00:00 and 2000-01-01T11:00:00 would both have the key 2000-01-01',
      )
    }
  })
})

const daily = (more: Partial<TimeDefinition> = {}) =>
  timeWindows({ cron: '0 0 * * *', timezone: 'UTC', format: '%Y-%m-%d', start: '2024-01-01', ...more })

describe('a window', () => {
  test('[P1] exists when it has closed, not a millisecond before', () => {
    const closing = at('2024-01-03T00:00:00Z')
    expect([daily().count(closing - 1), daily().count(closing)]).toEqual([1, 2])
  })

  test('[P1] may be kept back, and none before the first can be lost by that', () => {
    const late = daily({ endOffset: -2 })
    expect(['2024-01-02', '2024-01-03', '2024-01-04', '2024-01-05'].map((now) => late.count(at(now)))).toEqual([0, 0, 1, 2])
    expect(daily({ endOffset: 1 }).count(at('2023-12-31T23:00:00Z'))).toBe(0)
    expect(daily({ endOffset: 2 }).count(at('2023-12-31T23:00:00Z'))).toBe(1)
    expect(daily({ endOffset: 1 }).count(at('1960-01-01'))).toBe(0)
    expect(daily({ endOffset: -1, end: '2024-01-03' }).count(at('2024-06-01'))).toBe(2)
  })

  test('at which to end is left out, whatever the hour at which windows begin', () => {
    const windows = daily({ cron: '0 6 * * *', end: '2024-01-03' })
    expect(keys(windows, '2025-01-01')).toEqual(['2024-01-01', '2024-01-02'])
    expect(keys(daily({ cron: '0 6 * * *', end: '2024-01-03T00:00:00Z' }), '2025-01-01')).toEqual(['2024-01-01'])
    expect(windows.positionOf('2024-01-03')).toBeUndefined()
    expect(windows.at(2).key).toBe('2024-01-03')
  })

  test('does not exist when it would be open at the end, though that is written like a key', () => {
    const weekly = { cron: '0 0 * * 0', start: '2024-01-07' }
    expect(keys(daily({ ...weekly, end: '2024-01-24' }), '2025-01-01')).toEqual(['2024-01-07', '2024-01-14'])
    expect(keys(daily({ ...weekly, end: '2024-01-28' }), '2025-01-01')).toEqual(['2024-01-07', '2024-01-14', '2024-01-21'])
    expect(keys(daily({ cron: '0 0 1 * *', end: '2024-03-15' }), '2025-01-01')).toEqual(['2024-01-01', '2024-02-01'])
    const nuuk = { cron: '0 23 * * *', timezone: 'America/Nuuk', start: '2024-03-28' }
    expect(keys(daily({ ...nuuk, end: '2024-03-30' }), '2025-01-01')).toEqual(['2024-03-28', '2024-03-29'])
  })

  test('that is left out does not exist, and its neighbours keep their bounds', () => {
    const windows = daily({ exclusions: ['0 0 * * SAT,SUN'], endOffset: 1 })
    expect(windows.positionOf('2024-01-06')).toBeUndefined()
    expect(windows.at(4)).toMatchObject({ key: '2024-01-05', endMs: at('2024-01-06T00:00:00Z') })
    expect(windows.at(5)).toMatchObject({ key: '2024-01-08', startMs: at('2024-01-08T00:00:00Z') })
    expect(windows.startingBefore(at('2024-01-07T12:00:00Z'))).toBe(4)
    expect(windows.count(at('2024-01-07T12:00:00Z'))).toBe(6)
  })

  test('may be left out by its key, or by when it begins', () => {
    const windows = daily({ exclusions: ['0 0 * * SAT,SUN', '2024-01-01', '2024-01-03T00:00:00Z', '2024-01-06', '2023-12-25'] })
    expect(keys(windows, '2024-01-10')).toEqual(['2024-01-02', '2024-01-04', '2024-01-05', '2024-01-08', '2024-01-09'])
    expect(windows.at(1)).toMatchObject({ key: '2024-01-04', startMs: at('2024-01-04T00:00:00Z') })
    expect(windows.positionOf('2024-01-03')).toBeUndefined()
    expect(windows.startingBefore(at('2024-01-03T12:00:00Z'))).toBe(0)
    const berlin = {
      cron: '0 6 * * *',
      timezone: 'Europe/Berlin',
      exclusions: ['2024-01-02', '2024-01-03T06:00', '2024-01-04T06:00+01:00'],
    }
    expect(keys(daily(berlin), '2024-01-06')).toEqual(['2024-01-01'])
    expect(keys(daily({ ...berlin, end: '2024-01-06' }), '2025-01-01')).toEqual(['2024-01-01', '2024-01-05'])
    expect(() => daily({ exclusions: ['2024-01-03T12:00'] })).toThrow(/no window begins at 2024-01-03T12:00/)
  })

  test('is found by its key only in its one spelling', () => {
    for (const key of [
      '2024-1-02',
      '2024-01-02 ',
      ' 2024-01-02',
      '2024-01-02T00',
      '2024-02-30',
      '2023-12-31',
      '9999-01-01',
      '0000-01-01',
      '',
    ])
      expect(daily().positionOf(key)).toBeUndefined()
    expect(daily().positionOf('2024-01-02')).toBe(1)
    expect(daily().positionOf('2150-01-01')).toBe(46_021)
    expect(daily().positionOf('2024-01-02+0000')).toBeUndefined()
  })

  test('[P1] that clocks show a second time has its offset behind its key', () => {
    const berlin = timeWindows(
      unitDefinition('hourly', { start: '2024-10-27', format: '%Y-%m-%dT%H', timezone: 'Europe/Berlin' }),
    )
    expect(keys(berlin, '2024-10-27T03:00:00Z')).toEqual([
      '2024-10-27T00',
      '2024-10-27T01',
      '2024-10-27T02',
      '2024-10-27T02+0100',
      '2024-10-27T03',
    ])
    expect(berlin.positionOf('2024-10-27T02+0100')).toBe(3)
    expect(berlin.positionOf('2024-10-27T02+0200')).toBeUndefined()
    expect(berlin.positionOf('2024-10-27T03+0100')).toBeUndefined()
  })

  test('that was to begin while clocks jump past midnight is called by the day it was meant for', () => {
    const nuuk = daily({ cron: '0 23 * * *', timezone: 'America/Nuuk', start: '2024-03-29' })
    expect(keys(nuuk, '2024-04-02')).toEqual(['2024-03-29', '2024-03-30', '2024-03-31'])
    expect(nuuk.at(1).startMs).toBe(at('2024-03-31T01:00:00Z'))
    const apia = daily({ cron: '0 12 * * *', timezone: 'Pacific/Apia', start: '2011-12-29' })
    expect(keys(apia, '2012-01-01T22:00:00Z')).toEqual(['2011-12-29', '2011-12-30', '2011-12-31', '2012-01-01'])
  })

  test.each([
    ['a week from 23:00 on', '0 23 * * 6', 'America/Nuuk', '%Y-%m-%d', '2024-03-30', '2024-03-31T01:00:00Z'],
    ['a month from the 30th on', '0 23 30 * *', 'America/Nuuk', '%Y-%m-%dT%H:%M', '2024-03-30T23:00', '2024-03-31T01:00:00Z'],
    ['a day', '0 0 * * *', 'America/Santiago', '%Y-%m-%dT%H:%M', '2024-09-08T00:00', '2024-09-08T04:00:00Z'],
    ['a week', '0 0 * * 5', 'Africa/Cairo', '%Y-%m-%d %H', '2024-04-26 00', '2024-04-25T22:00:00Z'],
    ['a day, half past', '30 0 * * *', 'Asia/Beirut', '%Y-%m-%dT%H:%M', '2024-03-31T00:30', '2024-03-30T22:00:00Z'],
    [
      'a day, where half an hour is left out',
      '15 2 * * *',
      'Australia/Lord_Howe',
      '%H:%M %d.%m.%Y',
      '02:15 06.10.2024',
      '2024-10-05T15:30:00Z',
    ],
    ['a shift', '45 0,8,16 * * *', 'Atlantic/Azores', '%Y-%m-%dT%H:%M', '2024-03-31T00:45', '2024-03-31T01:00:00Z'],
    ['the last of two times', '0,30 0 * * *', 'Asia/Beirut', '%Y-%m-%dT%H:%M', '2024-03-31T00:30', '2024-03-30T22:00:00Z'],
  ])('[P17] over whose start clocks jump is named by the time its cron meant: %s', (_, cron, timezone, format, key, begin) => {
    const windows = timeWindows({ cron, timezone, format, start: '2024-01-01T00:00:00Z' })
    const position = windows.startingBefore(at(begin))
    expect(windows.at(position)).toMatchObject({ key, startMs: at(begin) })
    expect(windows.positionOf(key)).toBe(position)
    // The same name where an end or an exclusion is written.
    const before = timeWindows({ cron, timezone, format, start: '2024-01-01T00:00:00Z', end: key })
    expect(existing(before, '2025-01-01').at(-1)).toMatchObject({ endMs: at(begin) })
    const without = timeWindows({ cron, timezone, format, start: '2024-01-01T00:00:00Z', exclusions: [key] })
    expect(without.positionOf(key)).toBeUndefined()
    expect(keys(without, '2025-01-01')).toEqual(keys(windows, '2025-01-01').filter((each) => each !== key))
  })

  test('of a day that did not happen is none', () => {
    const apia = daily({ timezone: 'Pacific/Apia', start: '2011-12-29' })
    expect(keys(apia, '2012-01-01T22:00:00Z')).toEqual(['2011-12-29', '2011-12-31', '2012-01-01'])
    expect(apia.positionOf('2011-12-30')).toBeUndefined()
  })

  test('before which nothing begins has no position, and no position is negative', () => {
    expect(daily().startingBefore(at('2023-12-31T23:59:59Z'))).toBe(-1)
    expect(daily().startingBefore(at('2024-01-01T00:00:00Z'))).toBe(0)
    for (const position of [-1, 0.5, Number.NaN, 1e9])
      expect(() => daily().at(position)).toThrow('there is no window at position')
  })
})

describe('a definition', () => {
  test('says what to do when it cannot be used', () => {
    const refused: [Partial<TimeDefinition>, string][] = [
      [{ timezone: 'Europe/Atlantis' }, 'bad_timezone'],
      [{ cron: '0 0 30 2 *' }, 'bad_cron'],
      [{ exclusions: ['nonsense'] }, 'bad_window'],
      [{ exclusions: ['2025-02-30'] }, 'bad_window'],
      [{ exclusions: ['0 0 * *'] }, 'bad_cron'],
      [{ exclusions: ['0 0 * * *'] }, 'bad_window'],
      [{ start: 'yesterday' }, 'bad_window'],
      [{ start: '2024-02-30' }, 'bad_window'],
      [{ start: Number.NaN }, 'bad_window'],
      [{ start: '0001-01-01' }, 'bad_window'],
      [{ start: 1e17 }, 'bad_window'],
      [{ end: '2023-12-31' }, 'bad_window'],
      [{ endOffset: 0.5 }, 'bad_window'],
    ]
    for (const [more, code] of refused)
      expect(() => daily(more), JSON.stringify(more)).toThrow(
        expect.objectContaining({ kind: 'invalid', code, hint: expect.any(String) }),
      )
  })

  test('may begin at a key, at a time of its zone, at an instant', () => {
    const first = (start: string | number) => daily({ start, cron: '0 6 * * *', timezone: 'Asia/Tokyo' }).at(0).key
    const starts = [
      '2024-05-01',
      '2024-05-01T06:00',
      '2024-05-01T06:00:00+09:00',
      '2024-04-30T21:00:00Z',
      at('2024-04-30T21:00:00Z'),
    ]
    expect(starts.map(first)).toEqual(starts.map(() => '2024-05-01'))
    expect(first('2024-05-01T06:01')).toBe('2024-05-02')
  })
})

describe('a million windows', () => {
  /** Positions and how often the zone is asked for its offset to get there. */
  function asked(type: TimeUnit, position: number): number[] {
    let questions = 0
    const offsetAt = offsetsOf('America/New_York')
    const zone = new Zone('America/New_York', (ms) => {
      questions += 1
      return offsetAt(ms)
    })
    const windows = timeWindows(unitDefinition(type, { start: '1980-01-01', timezone: 'America/New_York' }), zone)
    return [0, position, position - 1, 12_345].map((each) => {
      const before = questions
      expect(windows.positionOf(windows.at(each).key)).toBe(each)
      return questions - before
    })
  }

  test('[P3] are no further away than one, but for a look at the years between them, once', () => {
    const [first = 0, last = 0, ...again] = asked('minutely', 999_999)
    expect(first).toBeLessThanOrEqual(200)
    expect(last).toBeLessThanOrEqual(2 * 100 + 100)
    expect(again).toEqual([0, 0])
    const [, farthest = 0, ...others] = asked('hourly', 999_999)
    expect(farthest).toBeLessThanOrEqual(115 * 100)
    expect(others).toEqual([0, 0])
  })

  test('[P3] are counted and found by key without going through those before', () => {
    let looks = 0
    class CountedZone extends Zone {
      override stretch(ms: number) {
        looks += 1
        return super.stretch(ms)
      }
    }
    const definition = unitDefinition('minutely', { start: '2024-01-01', timezone: 'America/New_York' })
    const zone = new CountedZone('America/New_York', offsetsOf('America/New_York'))
    const last = timeWindows(definition, zone).at(999_999)
    for (const answer of [
      () => timeWindows(definition, zone).positionOf(last.key),
      () => timeWindows(definition, zone).count(last.endMs) - 1,
      () => timeWindows(definition, zone).startingBefore(last.startMs),
    ]) {
      looks = 0
      expect(answer()).toBe(999_999)
      expect(looks).toBeLessThanOrEqual(20)
    }
  })
})

const units: fc.Arbitrary<Omit<TimeDefinition, 'start' | 'timezone'>> = fc
  .oneof(
    fc.record({ type: fc.constant('minutely' as const), every: fc.constantFrom(1, 15, 20, 30, 60) }),
    fc.record({ type: fc.constant('hourly' as const), minute: fc.nat(59) }),
    fc.record({ type: fc.constant('daily' as const), minute: fc.nat(59), hour: fc.nat(23) }),
    fc.record({ type: fc.constant('weekly' as const), hour: fc.nat(23), weekday: fc.nat(6) }),
    fc.record({
      type: fc.constantFrom('monthly' as const, 'quarterly' as const, 'yearly' as const),
      day: fc.integer({ min: 1, max: 28 }),
    }),
    fc.record({
      type: fc.constant('cron' as const),
      cron: fc.constantFrom(
        '*/7 1-5 * * *',
        '30 22-4 * * *',
        '0 0,6,12,18 * * *',
        '15,45 * * * 1-5',
        '0 2 L * *',
        '30 2 * * 1#2',
        '0 */5 * * *',
      ),
    }),
  )
  .map(({ type, ...options }) => unitDefinition(type, { start: 0, ...options }))

const list = (max: number) => fc.uniqueArray(fc.nat(max), { minLength: 1, maxLength: 3 }).map((values) => values.join(','))
const someCron = fc
  .tuple(fc.oneof(list(59), fc.constantFrom('*', '*/25', '50-10')), fc.oneof(list(23), fc.constantFrom('*', '*/3', '22-3')))
  .map(([minute, hour]) => unitDefinition('cron', { start: 0, cron: `${minute} ${hour} * * *` }))

const place = fc
  .tuple(
    fc.constantFrom(...oddZones.flatMap(({ zone, days }) => days.map((day) => ({ timezone: zone, day })))),
    fc.integer({ min: 0, max: 4 * 86_400 }),
  )
  .map(([{ timezone, day }, before]) => ({ timezone, start: at(`${day}T12:00:00Z`) - before * 1_000 }))

describe('for any unit, zone and start', () => {
  test('[P1] windows cover time without gap or overlap, and every one is found by position, key and time', () => {
    const property = fc.property(fc.oneof(units, someCron), place, fc.nat(10_000), (unit, { timezone, start }, days) => {
      const windows = timeWindows({ ...unit, timezone, start })
      for (const from of [0, windows.startingBefore(start + days * DAY_MS) + 1]) {
        let endMs: number | undefined
        const seen = new Set<string>()
        for (let position = from; position < from + 60; position++) {
          const window = windows.at(position)
          if (endMs !== undefined) expect(window.startMs).toBe(endMs)
          expect(window.endMs).toBeGreaterThan(window.startMs)
          expect(seen.has(window.key), window.key).toBe(false)
          expect(windows.positionOf(window.key)).toBe(position)
          expect(windows.startingBefore(window.startMs)).toBe(position)
          expect(windows.startingBefore(window.endMs - 1)).toBe(position)
          expect(windows.count(window.endMs)).toBe(position + 1)
          expect(windows.count(window.endMs - 1)).toBe(position)
          seen.add(window.key)
          endMs = window.endMs
        }
      }
    })
    fc.assert(property, { numRuns: 200 })
  })

  test('leaving windows out changes neither the bounds nor the order of the others', () => {
    const property = fc.property(
      units,
      place,
      fc.constantFrom('* * * * 0', '* 1-3 * * *', '0 * * * *', '30 2 * * 1'),
      fc.array(fc.nat(60), { maxLength: 8 }),
      (unit, where, left, single) => {
        const all = timeWindows({ ...unit, ...where })
        const exclusions = [left, ...single.map((position) => toIso(all.at(position).startMs))]
        let some: TimeWindows
        try {
          some = timeWindows({ ...unit, ...where, exclusions })
        } catch (error) {
          expect(error).toMatchObject({ code: 'bad_window' })
          return
        }
        let before = -1
        for (let position = 0; position < 50 && where.start + 60 * DAY_MS > some.at(position).startMs; position++) {
          const window = some.at(position)
          const same = all.positionOf(window.key) as number
          expect({ ...all.at(same), position }).toEqual(window)
          expect(same).toBeGreaterThan(before)
          expect(some.positionOf(window.key)).toBe(position)
          expect(single).not.toContain(same)
          expect(some.startingBefore(window.startMs)).toBe(position)
          before = same
        }
      },
    )
    fc.assert(property, { numRuns: 100 })
  })

  test('answers are the same whatever was asked before', () => {
    const asked = fc.array(fc.tuple(fc.nat(40), fc.boolean(), fc.nat(3)), { minLength: 1, maxLength: 40 })
    const property = fc.property(
      units,
      place,
      fc.option(fc.constant(['* 1-3 * * *']), { nil: undefined }),
      asked,
      (...given) => {
        const [unit, where, exclusions, questions] = given
        const definition = { ...unit, ...where, ...(exclusions && { exclusions }) }
        let windows: TimeWindows
        try {
          windows = timeWindows(definition)
        } catch (error) {
          expect(error).toMatchObject({ code: 'bad_window' })
          return
        }
        for (const [position, byKey, more] of questions) {
          // Now and then a few in order, which is answered by going from one to the next.
          for (let next = position; next <= position + more; next++) {
            const fresh = timeWindows(definition).at(next)
            if (byKey) expect(windows.positionOf(fresh.key)).toBe(timeWindows(definition).positionOf(fresh.key))
            else expect(windows.at(next)).toEqual(fresh)
          }
        }
      },
    )
    fc.assert(property, { numRuns: 20 })
  })
})
