import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DAY_MS } from '../lib/time.ts'
import { oddZones } from '../testing/odd-zones.ts'
import { Cadence } from './cadence.ts'
import { changeInWords, clockChanges, clockNote, effectInWords } from './clock-changes.ts'
import { parseCron } from './parse-cron.ts'
import { zoneNamed } from './zone-clocks.ts'

const at = (text: string) => Date.parse(text)

describe('changes of clocks', () => {
  test.each([
    ['Europe/Berlin', ['2027-03-28T01:00 clocks go forward at 02:00', '2027-10-31T01:00 clocks go back at 03:00']],
    [
      'Australia/Lord_Howe',
      ['2027-04-03T15:00 clocks go back by 30 minutes at 02:00', '2027-10-02T15:30 clocks go forward by 30 minutes at 02:00'],
    ],
    [
      'Antarctica/Troll',
      ['2027-03-28T01:00 clocks go forward by 2 hours at 01:00', '2027-10-31T01:00 clocks go back by 2 hours at 03:00'],
    ],
    ['Asia/Kolkata', []],
    ['UTC', []],
  ])('of %s are said', (zone, expected) => {
    const changes = clockChanges(zoneNamed(zone), at('2027-01-01'), at('2028-01-01'))
    expect(changes.map((change) => `${new Date(change.atMs).toISOString().slice(0, 16)} ${changeInWords(change)}`)).toEqual(
      expected,
    )
  })

  test('count from an instant that is none of them to one that may be', () => {
    const zone = zoneNamed('Europe/Berlin')
    const change = at('2027-03-28T01:00Z')
    expect(clockChanges(zone, change - 1, change)).toHaveLength(1)
    expect(clockChanges(zone, change, change + 1)).toEqual([])
    expect(clockChanges(zone, change - 10, change - 1)).toEqual([])
  })

  test.each([
    ['30 2 * * *', '02:30 runs at 03:00', '02:30 runs once, the second time'],
    ['*/5 2 * * *', '02:00 to 02:55 run once, at 03:00', '02:00 to 02:55 run once, the second time'],
    ['0 * * * *', '02:00 has no tick', '02:00 runs twice'],
    ['15,30 * * * *', '02:15 to 02:30 have no tick', '02:15 to 02:30 run twice'],
    ['15 30 2 * * *', '02:30:15 runs at 03:00', '02:30:15 runs once, the second time'],
    ['30 2 * * MON', undefined, undefined],
    ['0 3 * * *', undefined, undefined],
  ])('do to %s what its hour field says', (text, forward, back) => {
    const changes = clockChanges(zoneNamed('Europe/Berlin'), at('2027-01-01'), at('2028-01-01'))
    expect(changes.map((change) => effectInWords(change, parseCron(text)))).toEqual([forward, back])
  })
})

test('what is said of a change is what the ticks do, in zones with odd clocks too', () => {
  const nearby = oddZones.flatMap(({ zone, days }) => {
    const changes = days.flatMap((day) => clockChanges(zoneNamed(zone), at(day) - 2 * DAY_MS, at(day) + 2 * DAY_MS))
    return changes.map((change) => ({ timezone: zone, change }))
  })
  const expressions = ['0 * * * *', '*/7 * * * *', '30 2 * * *', '*/20 0-3 * * *', '0 0 * * *', '45 23 * * *', '15 1 * * SUN']
  const said = new Set<string>()
  const property = fc.property(fc.constantFrom(...nearby), fc.constantFrom(...expressions), ({ timezone, change }, text) => {
    const cadence = new Cadence({ cron_expressions: [text], timezone, start_at: null, end_at: null })
    const { atMs, beforeMs, afterMs } = change
    const effect = effectInWords(change, parseCron(text))
    const twiceMs = beforeMs - afterMs
    const [first, second] = [cadence.count(atMs - twiceMs - 1, atMs - 1), cadence.count(atMs - 1, atMs + twiceMs - 1)]
    said.add(effect?.replace(/^.* (?=(?:no|once|twice|at)\b)/, '').replace(/\d.*/, '') ?? '')
    if (effect === undefined) expect([first, second]).toEqual([0, 0])
    else if (/ runs? (?:once, )?at /.test(effect)) expect(cadence.has(atMs)).toBe(true)
    else if (/ runs? twice$/.test(effect)) expect([first > 0, first]).toEqual([true, second])
    else if (/ runs? once, the second time$/.test(effect)) expect([first, second > 0]).toEqual([0, true])
    else expect([effect, parseCron(text).everyHour, twiceMs < 0]).toEqual([expect.stringMatching(/no tick$/), true, true])
  })
  fc.assert(property, { numRuns: 400 })
  expect(said.size).toBeGreaterThanOrEqual(4)
})

/** Local time of each tick, with what is said of it. */
function listed(cron_expressions: string[], timezone: string, from: string, count: number): string[] {
  const [zone, crons] = [zoneNamed(timezone), cron_expressions.map(parseCron)]
  const cadence = new Cadence({ cron_expressions, timezone, start_at: null, end_at: null })
  const lines: string[] = []
  let since = at(from)
  for (let tick = cadence.after(since); tick !== undefined && lines.length < count; tick = cadence.after(tick)) {
    const local = new Date(zone.wallAt(tick)).toISOString().slice(5, 16)
    lines.push(`${local} ${clockNote(crons, zone, tick, since) ?? ''}`.trimEnd())
    since = tick
  }
  return lines
}

describe('a tick near a change of clocks', () => {
  test('that follows the clock says when it comes instead', () => {
    expect(listed(['30 2 * * *'], 'Europe/Berlin', '2027-03-26T12:00Z', 3)).toEqual([
      '03-27T02:30',
      '03-28T03:00 clocks go forward at 02:00; 02:30 runs at 03:00',
      '03-29T02:30',
    ])
    expect(listed(['30 2 * * *'], 'Europe/Berlin', '2027-10-29T12:00Z', 3)).toEqual([
      '10-30T02:30',
      '10-31T02:30 clocks go back at 03:00; 02:30 runs once, the second time',
      '11-01T02:30',
    ])
  })

  test('that follows time says what is missing and what comes twice', () => {
    expect(listed(['30 * * * *'], 'Europe/Berlin', '2027-03-28T00:00Z', 3)).toEqual([
      '03-28T01:30',
      '03-28T03:30 clocks go forward at 02:00; 02:30 has no tick',
      '03-28T04:30',
    ])
    expect(listed(['30 * * * *'], 'Europe/Berlin', '2027-10-30T23:00Z', 4)).toEqual([
      '10-31T01:30',
      '10-31T02:30 clocks go back at 03:00; 02:30 runs twice, this is the first time',
      '10-31T02:30 clocks go back at 03:00; 02:30 runs twice, this is the second time',
      '10-31T03:30',
    ])
  })

  test('of another time of the day says that they are changed, the first one and within a day', () => {
    expect(listed(['0 5,9 * * *'], 'Europe/Berlin', '2027-03-27T12:00Z', 2)).toEqual([
      '03-28T05:00 clocks go forward at 02:00',
      '03-28T09:00',
    ])
    expect(listed(['0 5 * * WED'], 'Europe/Berlin', '2027-03-27T12:00Z', 1)).toEqual(['03-31T05:00'])
  })

  test('of several expressions speaks for those that are meant', () => {
    expect(listed(['30 2 * * *', '45 2 * * SUN', '0 12 * * *'], 'Europe/Berlin', '2027-03-27T12:00Z', 2)).toEqual([
      '03-28T03:00 clocks go forward at 02:00; 02:30 runs at 03:00 and 02:45 runs at 03:00',
      '03-28T12:00',
    ])
    expect(listed(['30 * * * *', '45 2 * * *'], 'Europe/Berlin', '2027-10-31T00:00Z', 3)).toEqual([
      '10-31T02:30 clocks go back at 03:00; 02:30 runs twice, this is the first time',
      '10-31T02:30 clocks go back at 03:00; 02:30 runs twice, this is the second time',
      '10-31T02:45 clocks go back at 03:00; 02:45 runs once, the second time',
    ])
  })
})
