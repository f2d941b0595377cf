import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DAY_MS, HOUR_MS } from '../lib/time.ts'
import { oddZones } from '../testing/odd-zones.ts'
import { offsetsOf, Zone, zoneNamed } from './zone-clocks.ts'

const at = (text: string) => Date.parse(text)
const changes = (name: string, year: number) =>
  zoneNamed(name)
    .year(year)
    .stretches.slice(1)
    .map(({ fromMs, offsetMs, beforeMs }) => [new Date(fromMs).toISOString().slice(0, 19), (offsetMs - beforeMs) / 1_000])

describe('the clocks of a zone', () => {
  test.each([
    ['UTC', 2024, []],
    ['Asia/Kolkata', 2024, []],
    [
      'Europe/Berlin',
      2024,
      [
        ['2024-03-31T01:00:00', 3600],
        ['2024-10-27T01:00:00', -3600],
      ],
    ],
    [
      'Australia/Lord_Howe',
      2024,
      [
        ['2024-04-06T15:00:00', -1800],
        ['2024-10-05T15:30:00', 1800],
      ],
    ],
    [
      'America/St_Johns',
      2010,
      [
        ['2010-03-14T03:31:00', 3600],
        ['2010-11-07T02:31:00', -3600],
      ],
    ],
    ['Africa/Monrovia', 1971, [['1972-01-07T00:44:30', 2670]]],
    [
      'Antarctica/Troll',
      2024,
      [
        ['2024-03-31T01:00:00', 7200],
        ['2024-10-27T01:00:00', -7200],
      ],
    ],
  ] as const)('in %s are changed in %i when they are', (name, year, expected) => {
    expect(changes(name, year)).toEqual(expected)
  })

  test('show the same as Intl says, from 1970 to 2100', () => {
    const zones = oddZones.map(({ zone }) => ({ zone: zoneNamed(zone), offsetAt: offsetsOf(zone) }))
    const property = fc.property(
      fc.constantFrom(...zones),
      fc.integer({ min: 0, max: at('2100-12-31') / 1_000 }),
      ({ zone, offsetAt }, second) => {
        expect(zone.wallAt(second * 1_000) - second * 1_000).toBe(offsetAt(second * 1_000))
      },
    )
    fc.assert(property, { numRuns: 3_000 })
  })

  test('show a time once, twice or never', () => {
    const zone = zoneNamed('Europe/Berlin')
    const instants = (text: string) =>
      [zone.instantOf(at(text)), zone.instantOf(at(text), 'last')].map((ms) => new Date(ms).toISOString().slice(0, 16))
    expect(instants('2024-06-01T12:00:00Z')).toEqual(['2024-06-01T10:00', '2024-06-01T10:00'])
    expect(instants('2024-10-27T02:30:00Z')).toEqual(['2024-10-27T00:30', '2024-10-27T01:30'])
    expect(instants('2024-10-27T02:00:00Z')).toEqual(['2024-10-27T00:00', '2024-10-27T01:00'])
    expect(instants('2024-10-27T03:00:00Z')).toEqual(['2024-10-27T02:00', '2024-10-27T02:00'])
    expect(instants('2024-03-31T02:30:00Z')).toEqual(['2024-03-31T01:00', '2024-03-31T01:00'])
  })

  test('may be changed at New Year', () => {
    const change = at('2030-01-01T00:30:00Z')
    const zone = new Zone('Test/New_Year', (ms) => (ms < change ? 2 * HOUR_MS : HOUR_MS))
    expect(zone.stretch(change - 1)).toMatchObject({ toMs: change, offsetMs: 2 * HOUR_MS, afterMs: HOUR_MS })
    expect(zone.stretch(change)).toMatchObject({ fromMs: change, offsetMs: HOUR_MS, beforeMs: 2 * HOUR_MS })
    const later = at('2030-01-10T00:00:00Z')
    const unlucky = new Zone('Test/Quiet_Day', (ms) => (ms < later ? 0 : HOUR_MS))
    expect(unlucky.stretch(later).fromMs).toBe(later)
    expect(unlucky.yearOf(later)).toBe(2029)
    expect(unlucky.yearOf(later + 7 * DAY_MS)).toBe(2030)
  })
})
