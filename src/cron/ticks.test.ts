import fs from 'node:fs'
import path from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../lib/time.ts'
import { oddZones } from '../testing/odd-zones.ts'
import { type Cron, matchesDay, parseCron } from './parse-cron.ts'
import { nextTick, previousTick, Ticks, ticksFrom, wallTimesOf } from './ticks.ts'
import { offsetsOf, zoneNamed } from './zone-clocks.ts'

interface Row {
  cron: string
  timezone: string
  start_utc: string
  ticks_utc?: string[]
  expected_utc?: string[]
}
const folder = path.resolve(import.meta.dirname, '../../../shared/tables')
const rows = ['cron_dst.json', 'cron_ticks.json'].flatMap((name): Row[] => {
  const file = path.join(folder, name)
  if (fs.existsSync(file)) return JSON.parse(fs.readFileSync(file, 'utf8'))
  console.warn(`${file} is not there: ticks around changes of the clocks are not compared.`)
  return []
})

const iso = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString().replace('.000', ''))
const at = (text: string) => Date.parse(text)

function firstTicks(cron: string, zone: string, from: string, count: number): (string | undefined)[] {
  const found: (string | undefined)[] = []
  for (const ms of ticksFrom(parseCron(cron), zone, at(from))) {
    found.push(iso(ms))
    if (found.length === count) break
  }
  return found
}

test.skipIf(rows.length === 0)('[shared tables] ticks are those of the tables, also where clocks are changed', () => {
  const wrong = rows.flatMap((row) => {
    const expected = row.expected_utc ?? row.ticks_utc ?? []
    const ticks = firstTicks(row.cron, row.timezone, row.start_utc, expected.length)
    return ticks.join() === expected.join() ? [] : [{ ...row, ticks }]
  })
  expect(wrong).toEqual([])
  expect(rows.length).toBeGreaterThan(100)
})

describe('where clocks are changed', () => {
  test('a day that did not happen has its ticks when it is over', () => {
    expect(firstTicks('0 12 * * *', 'Pacific/Apia', '2011-12-29T00:00:00Z', 4)).toEqual([
      '2011-12-29T22:00:00Z',
      '2011-12-30T10:00:00Z',
      '2011-12-30T22:00:00Z',
      '2011-12-31T22:00:00Z',
    ])
    expect(firstTicks('0 0 * * *', 'Pacific/Apia', '2011-12-29T00:00:00Z', 3)).toEqual([
      '2011-12-29T10:00:00Z',
      '2011-12-30T10:00:00Z',
      '2011-12-31T10:00:00Z',
    ])
  })

  test('an expression for every hour is one however it is written', () => {
    for (const hours of ['*', '*/1', '0-23', '12-11']) {
      expect(firstTicks(`30 ${hours} * * *`, 'Europe/Berlin', '2024-10-26T23:00:00Z', 4)).toEqual([
        '2024-10-26T23:30:00Z',
        '2024-10-27T00:30:00Z',
        '2024-10-27T01:30:00Z',
        '2024-10-27T02:30:00Z',
      ])
    }
  })
})

describe('the tick next to an instant', () => {
  const cron = parseCron('0 6 * * *')

  test('is another one unless the instant itself counts', () => {
    const six = at('2024-06-01T06:00:00Z')
    expect(nextTick(cron, 'UTC', six)).toBe(six + DAY_MS)
    expect(nextTick(cron, 'UTC', six, { inclusive: true })).toBe(six)
    expect(nextTick(cron, 'UTC', six - 0.5)).toBe(six)
    expect(previousTick(cron, 'UTC', six)).toBe(six - DAY_MS)
    expect(previousTick(cron, 'UTC', six, { inclusive: true })).toBe(six)
    expect(previousTick(cron, 'UTC', six + 0.5)).toBe(six)
  })

  test('is none where time is not counted any more', () => {
    expect(nextTick(cron, 'Europe/Paris', at('2200-01-02T00:00:00Z'))).toBeUndefined()
    expect(nextTick(cron, 'Europe/Paris', Number.MAX_SAFE_INTEGER)).toBeUndefined()
    expect(previousTick(cron, 'Europe/Paris', at('1899-06-01T00:00:00Z'))).toBeUndefined()
    expect(iso(nextTick(cron, 'UTC', Number.NEGATIVE_INFINITY))).toBe('1900-02-01T06:00:00Z')
  })

  test('[P18] is refused in a zone that is none', () => {
    for (const zone of ['Mars/Olympus', '', 'Europe', '+05:30', '-03', '+0530', 'UTC+1'])
      expect(() => nextTick(cron, zone, 0)).toThrow(expect.objectContaining({ code: 'bad_timezone', hint: expect.any(String) }))
  })
})

const values = (min: number, max: number) =>
  fc.oneof(
    fc.integer({ min, max }).map(String),
    fc.tuple(fc.integer({ min, max }), fc.integer({ min, max })).map(([a, b]) => `${a}-${b}`),
    fc.array(fc.integer({ min, max }), { minLength: 1, maxLength: 3 }).map((list) => list.join(',')),
    fc.integer({ min: 1, max: max + 5 }).map((step) => `*/${step}`),
  )
const any = fc.constant('*')
const someCron = fc
  .tuple(
    fc.oneof(values(0, 59), any),
    fc.oneof({ weight: 2, arbitrary: any }, { weight: 3, arbitrary: values(0, 23) }),
    fc.oneof({ weight: 3, arbitrary: any }, { weight: 1, arbitrary: fc.oneof(values(1, 28), fc.constant('L')) }),
    fc.oneof({ weight: 5, arbitrary: any }, { weight: 1, arbitrary: values(1, 12) }),
    fc.oneof({ weight: 3, arbitrary: any }, { weight: 1, arbitrary: fc.oneof(values(0, 7), fc.constantFrom('1#2', 'L5')) }),
  )
  .map((fields) => fields.join(' '))

const someDay = fc.oneof(
  fc.constantFrom(...oddZones.flatMap(({ zone, days }) => days.map((day) => ({ zone, day })))),
  fc
    .tuple(fc.constantFrom(...oddZones.map(({ zone }) => zone)), fc.integer({ min: 0, max: 130 * 365 }))
    .map(([zone, day]) => ({ zone, day: new Date(day * DAY_MS).toISOString().slice(0, 10) })),
)

function named(cron: Cron, wallMs: number): boolean {
  const date = new Date(wallMs)
  const length = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  return (
    matchesDay(cron, date.getUTCMonth() + 1, date.getUTCDate(), date.getUTCDay(), length) &&
    cron.hours.includes(date.getUTCHours()) &&
    cron.minutes.includes(date.getUTCMinutes())
  )
}

/** Every tick between two instants by looking at every minute: slow, and written as the rule reads. */
function minuteByMinute(cron: Cron, zone: string, fromMs: number, toMs: number): number[] {
  const offsetAt = remembered(offsetsOf(zone))
  const found = new Set<number>()
  // Minutes as clocks show them, from a day before to a day after; instants at which each is shown.
  for (let wall = fromMs - 2 * DAY_MS; wall < toMs + 2 * DAY_MS; wall += MINUTE_MS) {
    if (!named(cron, wall)) continue
    const offsets = new Set([-26, 26].map((hours) => offsetAt(wall + hours * HOUR_MS)))
    const shown = [...offsets].map((offset) => wall - offset).filter((ms) => ms + offsetAt(ms) === wall)
    const both = shown.sort((a, b) => a - b)
    if (both.length > 0) for (const ms of cron.everyHour ? both : both.slice(-1)) found.add(ms)
    else if (!cron.everyHour) found.add(firstAfterJump(wall, offsetAt))
  }
  return [...found].filter((ms) => ms >= fromMs && ms < toMs).sort((a, b) => a - b)
}

/** Offsets by quarter of an hour, asked for exactly only where they differ at its ends. */
function remembered(offsetAt: (ms: number) => number): (ms: number) => number {
  const known = new Map<number, number>()
  return (ms) => {
    const quarter = Math.floor(ms / (15 * MINUTE_MS)) * 15 * MINUTE_MS
    const [first, last] = [quarter, quarter + 15 * MINUTE_MS - 1].map((edge) => {
      const offset = known.get(edge) ?? offsetAt(edge)
      known.set(edge, offset)
      return offset
    })
    return first === last ? (first as number) : offsetAt(ms)
  }
}

function firstAfterJump(wall: number, offsetAt: (ms: number) => number): number {
  // Before the jump clocks show less than this time, after it more.
  for (let ms = wall - 26 * HOUR_MS; ; ms += 30_000) if (ms + offsetAt(ms) > wall) return ms
}

describe('for any expression, zone and day', () => {
  test('ticks are those found by looking at every minute', () => {
    const property = fc.property(someCron, someDay, (text, { zone, day }) => {
      const cron = parseCron(text)
      const [fromMs, toMs] = [at(`${day}T00:00:00Z`) - DAY_MS, at(`${day}T00:00:00Z`) + 2 * DAY_MS]
      const expected = minuteByMinute(cron, zone, fromMs, toMs)
      const found: number[] = []
      for (const tick of ticksFrom(cron, zone, fromMs)) {
        if (tick >= toMs) break
        found.push(tick)
      }
      expect(found.map(iso)).toEqual(expected.map(iso))
      const back: number[] = []
      let tick = previousTick(cron, zone, toMs)
      while (tick !== undefined && tick >= fromMs) {
        back.unshift(tick)
        tick = previousTick(cron, zone, tick)
      }
      expect(back).toEqual(found)
    })
    fc.assert(property, { numRuns: Number(process.env['SERVO_RUNS'] ?? 80) })
  })

  test('counting, taking the n-th and stepping agree', () => {
    const property = fc.property(someCron, someDay, fc.nat(5_000), (text, { zone, day }, n) => {
      const cron = parseCron(text)
      const ticks = new Ticks(zoneNamed(zone), cron, wallTimesOf(cron), at(`${day}T00:00:00Z`))
      const tick = ticks.at(n)
      if (tick === undefined) return
      expect(ticks.rank(tick)).toBe(n)
      expect(ticks.rank(tick + 1)).toBe(n + 1)
      expect(ticks.next(tick)).toBe(tick)
      expect(ticks.next(tick + 1)).toBe(ticks.at(n + 1))
      if (n > 0) expect(ticks.previous(tick - 1)).toBe(ticks.at(n - 1))
    })
    fc.assert(property, { numRuns: 300 })
  })
})
