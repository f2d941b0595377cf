import { describe, expect, test } from 'vitest'
import { parseCron } from './parse-cron.ts'
import { clockTrap, trapsOf } from './traps.ts'

describe('what an expression does that its author may not have meant', () => {
  test.each([
    ['*/90 * * * *', ['*/90 is minute 0 alone: minutes end at 59']],
    ['*/60 * * * *', ['*/60 is minute 0 alone: minutes end at 59']],
    ['0 */24 * * *', ['*/24 is 00:00 alone: hours end at 23']],
    ['*/7 * * * *', ['*/7 begins anew each hour: from minute 56 to minute 0 it is 4 minutes']],
    ['0 */5 * * *', ['*/5 begins anew each day: from 20:00 to 00:00 it is 4 hours']],
    ['0 0 */2 * *', ['*/2 begins anew each month']],
    ['0 0 1 */5 *', ['*/5 begins anew each year: from month 11 to month 1 it is 2 months']],
    ['0 0 * * */2', ['*/2 begins anew each week: from weekday 6 to weekday 0 it is 1 day']],
    ['5/10 * * * *', []],
    ['0 4/12 * * *', []],
    ['3/20 * * * *', []],
    [
      '0 0 13 * FRI',
      ['a day counts if either day field names it: for days that match both, check the other one in code (when)'],
    ],
    ['0 0 31 * *', ['months without a 31st are passed over']],
    ['0 0 15,31 * *', ['months without a 31st have no tick then']],
    ['0 0 29 2 *', ['only leap years have that day']],
    ['* 5 * * *', ['it ticks each minute of these hours: for once an hour, write 0 as the minute']],
    ['*/5 * * * * *', ['with six fields the first is the second, not the minute']],
  ])('%s: %j', (text, notes) => {
    expect(trapsOf(parseCron(text))).toEqual(notes)
  })

  test.each([
    '*/15 * * * *',
    '0 */6 * * *',
    '0 5 * * MON-FRI',
    '0 9-17/3 * * *',
    '@daily',
    '0 0 L * *',
    '* * * * *',
    '0 0 1 */3 *',
  ])('%s does what it says', (text) => {
    expect(trapsOf(parseCron(text))).toEqual([])
  })

  test('of several mistakes the first is named', () => {
    expect(() => parseCron('a b c d e')).toThrow('"a" cannot be the minute')
  })

  test('times that many zones jump over are noted, if hours are named', () => {
    expect(clockTrap(parseCron('30 2 * * *'))).toContain('--timezone')
    expect(['0 5 * * *', '30 * * * *'].map((text) => clockTrap(parseCron(text)))).toEqual([undefined, undefined])
  })
})
