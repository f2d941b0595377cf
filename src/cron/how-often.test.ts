import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Cadence } from './cadence.ts'
import { howOften, howOftenInWords } from './how-often.ts'
import { parseCron } from './parse-cron.ts'

describe('how often an expression ticks', () => {
  test.each([
    ['*/5 * * * *', '288 times a day, 2,016 a week, about 105,190 a year'],
    ['0 5 * * *', 'once a day, 7 a week, about 365 a year'],
    ['0 0,12 * * *', 'twice a day, 14 a week, about 730 a year'],
    ['* * * * * *', '86,400 times a day, 604,800 a week, about 31,556,952 a year'],
    ['0 5 * * MON-FRI', '5 times a week, about 261 a year'],
    ['0 5 * * SUN', 'once a week, about 52 a year'],
    ['0 9-17 * * MON-FRI', '9 times a day on 5 days a week, 45 a week, about 2,348 a year'],
    ['0 9,17 * * MON', 'twice a day on one day a week, 2 a week, about 104 a year'],
    ['0 0 1 * *', '12 times a year'],
    ['0 0 1 1 *', 'once a year'],
    ['0 0,6 1 1 *', 'twice a day on one day a year, 2 a year'],
    ['0 0 31 * *', '7 times a year'],
    ['0 0 29 * *', 'about 11 times a year'],
    ['0 * 1 * *', '24 times a day on 12 days a year, 288 a year'],
    ['0 0 13 * FRI', 'about 62 times a year'],
    ['0 0 29 2 *', '97 times in 400 years'],
    ['0 0,6 29 2 *', 'twice a day on 97 days in 400 years'],
    ['0 0 * 2 MON#5', '15 times in 400 years'],
    ['0 0 13 * 0-6', 'once a day, 7 a week, about 365 a year'],
  ])('%s ticks %s', (text, expected) => {
    expect(howOftenInWords(howOften(parseCron(text)))).toBe(expected)
  })

  test('is what its ticks add up to', () => {
    const property = fc.property(
      fc.constantFrom('0 0', '*/7 3', '0,30 9-17', '15 *'),
      fc.constantFrom('*', '1', '29', '31', 'L', '*/2'),
      fc.constantFrom('*', '2', '1,4', '6-8'),
      fc.constantFrom('*', 'MON', '1-5', '5#5', 'L3', 'SUN,2#1'),
      (...fields) => {
        const text = fields.join(' ')
        // There is no 31 February.
        fc.pre(!/ 31 2 /.test(text))
        const cadence = new Cadence({ cron_expressions: [text], timezone: 'UTC', start_at: null, end_at: null })
        // The 28 years from 2001 on have each kind of year as often as it comes while every fourth year is a leap year.
        const ticks = cadence.count(Date.UTC(2001, 0) - 1, Date.UTC(2029, 0) - 1)
        expect(Math.abs(howOften(parseCron(text)).perYear - ticks / 28) / (ticks / 28)).toBeLessThan(0.04)
      },
    )
    fc.assert(property, { numRuns: 150 })
  })
})
