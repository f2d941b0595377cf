import { describe, expect, test } from 'vitest'
import { type TimeUnit, type UnitOptions, unitDefinition } from './units.ts'
import { timeWindows } from './windows.ts'

const first = (type: TimeUnit, options: UnitOptions) => timeWindows(unitDefinition(type, options)).at(0)
const spans = (type: TimeUnit, options: UnitOptions) => {
  const { key, startMs, endMs } = first(type, options)
  return [key, new Date(startMs).toISOString().slice(0, 16), new Date(endMs).toISOString().slice(0, 16)]
}

describe('windows', () => {
  test.each([
    ['minutely', {}, ['2024-01-15T00:00', '2024-01-15T00:00', '2024-01-15T00:01']],
    ['minutely', { every: 15 }, ['2024-01-15T00:00', '2024-01-15T00:00', '2024-01-15T00:15']],
    ['minutely', { every: 60 }, ['2024-01-15T00:00', '2024-01-15T00:00', '2024-01-15T01:00']],
    ['hourly', { minute: 30 }, ['2024-01-15T00', '2024-01-15T00:30', '2024-01-15T01:30']],
    ['daily', {}, ['2024-01-15', '2024-01-15T00:00', '2024-01-16T00:00']],
    ['daily', { hour: 6, minute: 15 }, ['2024-01-15', '2024-01-15T06:15', '2024-01-16T06:15']],
    ['weekly', {}, ['2024-01-15', '2024-01-15T00:00', '2024-01-22T00:00']],
    ['weekly', { weekday: 0 }, ['2024-01-21', '2024-01-21T00:00', '2024-01-28T00:00']],
    ['weekly', { format: '%G-W%V' }, ['2024-W03', '2024-01-15T00:00', '2024-01-22T00:00']],
    ['monthly', {}, ['2024-02', '2024-02-01T00:00', '2024-03-01T00:00']],
    ['monthly', { day: 15, hour: 4 }, ['2024-01', '2024-01-15T04:00', '2024-02-15T04:00']],
    ['quarterly', {}, ['2024-04', '2024-04-01T00:00', '2024-07-01T00:00']],
    ['quarterly', { month: 2 }, ['2024-02', '2024-02-01T00:00', '2024-05-01T00:00']],
    ['yearly', {}, ['2025', '2025-01-01T00:00', '2026-01-01T00:00']],
    ['yearly', { month: 4, day: 6 }, ['2024', '2024-04-06T00:00', '2025-04-06T00:00']],
    ['cron', { cron: '0 6 * * MON-FRI' }, ['2024-01-15T06:00', '2024-01-15T06:00', '2024-01-16T06:00']],
  ] as const)('that are %s with %j begin and end as one would say', (type, options, expected) => {
    expect(spans(type, { start: '2024-01-15', ...options })).toEqual(expected)
  })

  test('may start at their own kind of key', () => {
    expect(first('monthly', { start: '2024-03' }).key).toBe('2024-03')
    expect(first('hourly', { start: '2024-03-01T07', timezone: 'Asia/Tokyo' }).key).toBe('2024-03-01T07')
    expect(first('yearly', { start: '2024' }).key).toBe('2024')
    expect(first('weekly', { start: '2024-W05', format: '%G-W%V' }).key).toBe('2024-W05')
  })

  test.each([
    ['minutely', { every: 7 }],
    ['minutely', { hour: 1 }],
    ['hourly', { minute: 60 }],
    ['daily', { hour: 1.5 }],
    ['daily', { weekday: 1 }],
    ['weekly', { weekday: 7 }],
    ['monthly', { day: 29 }],
    ['quarterly', { month: 4 }],
    ['yearly', { month: 2, day: 29 }],
    ['cron', {}],
    ['fortnightly' as 'weekly', {}],
  ] as const)('cannot be %s with %j', (type, options) => {
    expect(() => unitDefinition(type, { start: '2024-01-01', ...options })).toThrow(
      expect.objectContaining({ kind: 'invalid', code: 'bad_window', hint: expect.any(String) }),
    )
  })
})
