import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { TimeFormat } from './format.ts'

const moment = Date.parse('2024-12-30T04:05:06Z')

describe('a key format', () => {
  test.each([
    ['%Y-%m-%d', '2024-12-30', 'day'],
    ['%F', '2024-12-30', 'day'],
    ['%Y-%m-%d-%H:%M', '2024-12-30-04:05', 'minute'],
    ['%FT%R', '2024-12-30T04:05', 'minute'],
    ['%FT%T', '2024-12-30T04:05:06', 'second'],
    ['%Y-%m-%dT%H', '2024-12-30T04', 'hour'],
    ['%Y%m%d', '20241230', 'day'],
    ['%m/%d/%Y', '12/30/2024', 'day'],
    ['%Y-%m', '2024-12', 'month'],
    ['%Y', '2024', 'year'],
    ['%G-W%V', '2025-W01', 'week'],
    ['%G-W%V-%u', '2025-W01-1', 'day'],
    ['%Y.%j', '2024.365', 'day'],
    ['day %d of %B %Y', 'day 30 of December 2024', 'day'],
    ['%a %d %b %Y', 'Mon 30 Dec 2024', 'day'],
    ['%A %F', 'Monday 2024-12-30', 'day'],
    ['%Y-%m-%dT%H%z', '2024-12-30T04-0330', 'hour'],
    ['100%% %Y', '100% 2024', 'year'],
  ] as const)('%s writes %s', (text, key, resolution) => {
    const format = new TimeFormat(text)
    expect(format.write(moment, -3.5 * 3_600_000)).toBe(key)
    expect(format.resolution).toBe(resolution)
    expect(format.write(format.read(key)?.wallMs as number, -3.5 * 3_600_000)).toBe(key)
  })

  test.each([
    '',
    'day',
    '%m-%d',
    '%Y-%d',
    '%Y-W%V',
    '%G',
    '%H:%M',
    '%Y %H',
    '%Y-%m-%d %M',
    '%Y-%m-%d %H %S',
    '%Y,%m',
    'day=%Y-%m-%d',
    '%Y\n',
    '%Y\u0000%m',
    ' %Y',
    '%Y-%m-%d "%H"',
    '%Yé',
    '%y-%m-%d',
    '%Q',
    '%Y-%',
    '%Y'.repeat(60),
  ])('cannot be %j', (text) => {
    expect(() => new TimeFormat(text)).toThrow(
      expect.objectContaining({ kind: 'invalid', code: 'bad_key_format', hint: expect.any(String) }),
    )
  })

  test.each(['2024-13-01', '2024-02-30', '2023-02-29', '2024-00-10', '24-01-01', '2024-01-01\n', '٢٠٢٤-01-01'])(
    'reads no date out of %j',
    (key) => {
      expect(new TimeFormat('%Y-%m-%d').read(key)).toBeUndefined()
    },
  )

  test('reads back what it writes, to the second', () => {
    const seconds = fc.integer({ min: Date.UTC(1900, 0) / 1000, max: Date.UTC(2199, 11) / 1000 })
    const formats = ['%FT%T', '%Y %j %T', '%G-W%V-%u %T', '%A %d %B %Y %T'].map((text) => new TimeFormat(text))
    const property = fc.property(seconds, fc.constantFrom(...formats), (second, format) => {
      expect(format.read(format.write(second * 1000, 0))?.wallMs).toBe(second * 1000)
    })
    fc.assert(property, { numRuns: 500 })
  })
})
