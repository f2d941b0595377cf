import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { daysInMonth, firstDayOf, weekdayOf } from '../lib/calendar.ts'
import { isServoError } from '../lib/error.ts'
import { cronInWords } from './cron-in-words.ts'
import { type Cron, matchesDay, parseCron } from './parse-cron.ts'

const words = (text: string) => cronInWords(parseCron(text))

describe('a cron expression in words', () => {
  test.each([
    ['* * * * *', 'every minute'],
    ['*/5 * * * *', 'every 5 minutes'],
    ['*/30 * * * *', 'every 30 minutes'],
    ['0 * * * *', 'every hour'],
    ['@hourly', 'every hour'],
    ['1 * * * *', 'at 1 minute past every hour'],
    ['5 * * * *', 'at 5 minutes past every hour'],
    ['5/15 * * * *', 'every 15 minutes from 5 to 50 minutes past every hour'],
    ['*/7 * * * *', 'every 7 minutes from 0 to 56 minutes past every hour'],
    ['10-20 * * * *', 'every minute from 10 to 20 minutes past every hour'],
    ['0-10,30 * * * *', 'at 0 to 10 and 30 minutes past every hour'],
    ['50-10 * * * *', 'at 0 to 10 and 50 to 59 minutes past every hour'],
    ['*/90 * * * *', 'every hour'],
    ['0,30 * * * *', 'every 30 minutes'],
    ['0 5 * * *', 'at 05:00 every day'],
    ['@daily', 'at 00:00 every day'],
    ['@midnight', 'at 00:00 every day'],
    ['30 2 * * *', 'at 02:30 every day'],
    ['0 6,14,22 * * *', 'at 06:00, 14:00 and 22:00 every day'],
    ['0 */2 * * *', 'every 2 hours'],
    ['0 */6 * * *', 'every 6 hours'],
    ['0 */8 * * *', 'at 00:00, 08:00 and 16:00 every day'],
    ['0 */12 * * *', 'at 00:00 and 12:00 every day'],
    ['15 */6 * * *', 'every 6 hours from 00:15 to 18:15 every day'],
    ['0 */7 * * *', 'every 7 hours from 00:00 to 21:00 every day'],
    ['0 */5 * * *', 'every 5 hours from 00:00 to 20:00 every day'],
    ['0 9-17 * * *', 'every hour from 09:00 to 17:00 every day'],
    ['0 9-17/2 * * *', 'every 2 hours from 09:00 to 17:00 every day'],
    ['0 22-4 * * *', 'every hour from 22:00 to 04:00 every day'],
    ['0 22-4/2 * * *', 'every 2 hours from 22:00 to 04:00 every day'],
    ['0 22-4 * * MON', 'every hour from 00:00 to 04:00, and at 22:00 and 23:00 on Monday'],
    ['0 9-12,15 * * *', 'every hour from 09:00 to 12:00, and at 15:00 every day'],
    ['0 0-4,9-17,20 * * *', 'every hour from 00:00 to 04:00 and from 09:00 to 17:00, and at 20:00 every day'],
    ['0,30 9-17 * * *', 'every 30 minutes from 09:00 to 17:30 every day'],
    ['*/15 9-17 * * MON-FRI', 'every 15 minutes from 09:00 to 17:45 on Monday to Friday'],
    ['*/15 9,17 * * *', 'every 15 minutes from 09:00 to 09:45 and from 17:00 to 17:45 every day'],
    ['* 9 * * *', 'every minute from 09:00 to 09:59 every day'],
    ['* * 9 * * *', 'every second from 09:00:00 to 09:59:59 every day'],
    ['*/5 */2 * * *', 'every 5 minutes in every 2nd hour, from 00:00 to 22:55 every day'],
    ['*/5 0,3,5,9,13 * * *', 'every 5 minutes in the hours that begin at 00:00, 03:00, 05:00, 09:00 and 13:00 every day'],
    ['5,20 9-17 * * *', 'at 5 and 20 minutes past every hour from 09:00 to 17:00 every day'],
    ['5,20 9,12,13,18 * * *', 'at 5 and 20 minutes past 09:00, 12:00, 13:00 and 18:00 every day'],
    ['*/7 2-4 * * *', 'every 7 minutes from 0 to 56 minutes past 02:00, 03:00 and 04:00 every day'],
    ['10-20 9 * * *', 'every minute from 09:10 to 09:20 every day'],
    ['0,20 9,12 * * *', 'at 09:00, 09:20, 12:00 and 12:20 every day'],
    ['* * * * * *', 'every second'],
    ['*/10 * * * * *', 'every 10 seconds'],
    ['30 * * * * *', 'at 30 seconds past every minute'],
    ['1 * * * * *', 'at 1 second past every minute'],
    ['15,45 * * * * *', 'at 15 and 45 seconds past every minute'],
    ['*/7 * * * * *', 'every 7 seconds from 0 to 56 seconds past every minute'],
    ['30 0 * * * *', 'at 30 seconds past every hour'],
    ['30 5 * * * *', 'at 30 seconds past minute 5 of every hour'],
    ['30 */5 * * * *', 'at 30 seconds past every 5th minute of every hour'],
    ['*/10 */5 * * * *', 'every 10 seconds in every 5th minute of every hour'],
    ['*/10 9-17 * * * *', 'every 10 seconds in minutes 9 to 17 of every hour'],
    ['* * 9-17 * * *', 'every second from 09:00:00 to 17:59:59 every day'],
    ['* 0 5 * * *', 'every second from 05:00:00 to 05:00:59 every day'],
    ['30 0 5 * * *', 'at 05:00:30 every day'],
    ['15,45 0 6 * * *', 'at 06:00:15 and 06:00:45 every day'],
    ['0 0 6 * * *', 'at 06:00 every day'],
    ['10,20 0,30 6-9 * * *', 'at 10 and 20 seconds past every 30th minute of every hour from 06:00 to 09:00 every day'],
    ['59 59 23 * * *', 'at 23:59:59 every day'],
    ['*/10 3/9 9 * * *', 'every 10 seconds in every 9th minute from 3 to 57 of the hour that begins at 09:00 every day'],
    ['0 5 * * 1-5', 'at 05:00 on Monday to Friday'],
    ['0 5 * * MON-FRI', 'at 05:00 on Monday to Friday'],
    ['0 0 * * 0', 'at 00:00 on Sunday'],
    ['@weekly', 'at 00:00 on Sunday'],
    ['0 0 * * 7', 'at 00:00 on Sunday'],
    ['0 0 * * 6,0', 'at 00:00 on Saturday and Sunday'],
    ['0 0 * * SAT-MON', 'at 00:00 on Saturday to Monday'],
    ['0 0 * * 1,3,5', 'at 00:00 on Monday, Wednesday and Friday'],
    ['0 0 * * */2', 'at 00:00 on Tuesday, Thursday, Saturday and Sunday'],
    ['0 0 1 * *', 'at 00:00 on the 1st of the month'],
    ['@monthly', 'at 00:00 on the 1st of the month'],
    ['0 0 1,15 * *', 'at 00:00 on the 1st and 15th of the month'],
    ['0 0 10-20 * *', 'at 00:00 on the 10th to 20th of the month'],
    ['0 0 */10 * *', 'at 00:00 on the 1st, 11th, 21st and 31st of the month'],
    ['0 0 */2 * *', 'at 00:00 on every 2nd day from the 1st to the 31st of the month'],
    ['0 0 L * *', 'at 00:00 on the last day of the month'],
    ['0 0 15,L * *', 'at 00:00 on the 15th and the last day of the month'],
    ['0 0 15-L * *', 'at 00:00 on the 15th to 31st of the month'],
    ['0 0 31 * *', 'at 00:00 on the 31st of the month'],
    ['0 0 29,30,31 * *', 'at 00:00 on the 29th to 31st of the month'],
    ['0 0 31,L * *', 'at 00:00 on the last day of the month'],
    ['0 0 28-30,L * *', 'at 00:00 on the 28th to 31st of the month'],
    ['0 0 1 1 *', 'at 00:00 on 1 January'],
    ['@yearly', 'at 00:00 on 1 January'],
    ['0 0 L 12 *', 'at 00:00 on 31 December'],
    ['0 0 L 2 *', 'at 00:00 on the last day of February'],
    ['0 0 29 2 *', 'at 00:00 on 29 February'],
    ['0 0 31 4,5 *', 'at 00:00 on 31 May'],
    ['0 0 1 */3 *', 'at 00:00 on the 1st of January, April, July and October'],
    ['0 0 1 JAN-JUN *', 'at 00:00 on the 1st of every month from January to June'],
    ['0 0 * NOV-JAN *', 'at 00:00 every day from November to January'],
    ['0 0 * 1 *', 'at 00:00 every day in January'],
    ['*/5 * * 1,6 *', 'every 5 minutes in January and June'],
    ['0 0 * JUN-AUG MON-FRI', 'at 00:00 on Monday to Friday from June to August'],
    ['0 0 * * MON#2', 'at 00:00 on the second Monday of the month'],
    ['0 0 * * 5#2', 'at 00:00 on the second Friday of the month'],
    ['0 0 * * L5', 'at 00:00 on the last Friday of the month'],
    ['0 0 * * MON#1,MON#3', 'at 00:00 on the first and third Monday of the month'],
    ['0 0 * * MON-WED#2', 'at 00:00 on the second Monday, the second Tuesday and the second Wednesday of the month'],
    ['0 0 * 11 THU#4', 'at 00:00 on the fourth Thursday of November'],
    ['0 0 * * 5#5', 'at 00:00 on the fifth Friday of the month'],
    ['0 0 * * SUN,FRI#2', 'at 00:00 on Sunday and on the second Friday of the month'],
    ['0 0 * * FRI#4,L5', 'at 00:00 on the fourth and fifth Friday of the month'],
    ['0 0 * * FRI#1,FRI#2,FRI#3,FRI#4,L5', 'at 00:00 on Friday'],
    ['0 0 13 * FRI', 'at 00:00 on the 13th of the month or on Friday (either is enough)'],
    ['0 0 13 * 0-6', 'at 00:00 every day'],
    ['0 0 13 1 FRI', 'at 00:00 on the 13th of the month or on Friday (either is enough), in January'],
    ['0 0 1,15 * MON#1', 'at 00:00 on the 1st and 15th of the month or on the first Monday of the month (either is enough)'],
    ['0 0 L * SUN', 'at 00:00 on the last day of the month or on Sunday (either is enough)'],
    ['0 0 ? * ?', 'at 00:00 every day'],
    ['0 0 */2 2 *', 'at 00:00 on every 2nd day from the 1st to the 29th of February'],
  ])('%s is %s', (text, expected) => {
    expect(words(text)).toBe(expected)
  })
})

/** The days of 28 years, after which years begin again with the same weekdays. */
const calendar: [month: number, day: number, weekday: number, length: number][] = []
for (let year = 2001; year < 2029; year++) {
  for (let month = 1, weekday = weekdayOf(firstDayOf(year)); month <= 12; month++) {
    const length = daysInMonth(year, month)
    for (let day = 1; day <= length; day++, weekday = (weekday + 1) % 7) calendar.push([month, day, weekday, length])
  }
}

const daysOf = new Map<string, string>()

/** All that an expression means, found one day after the other. */
function meaningOf(cron: Cron): string {
  const fields = cron.text.split(' ').slice(-3).join(' ')
  const days = daysOf.get(fields) ?? calendar.map((day) => (matchesDay(cron, ...day) ? '1' : '0')).join('')
  daysOf.set(fields, days)
  return JSON.stringify([cron.seconds, cron.minutes, cron.hours, days])
}

const accepted = (text: string): Cron | undefined => {
  try {
    return parseCron(text)
  } catch (error) {
    if (isServoError(error, 'invalid')) return undefined
    throw error
  }
}

/** Each expression that puts together one of each list. */
function combined(...lists: readonly (readonly string[])[]): string[] {
  return lists.reduce<string[]>((texts, list) => texts.flatMap((text) => list.map((word) => `${text} ${word}`.trim())), [''])
}

/** Pairs of which one is true and the other is not: the same words, and the same meaning. */
function confused(texts: readonly string[]): [string, string, string][] {
  const byMeaning = new Map<string, string>()
  const byWords = new Map<string, string>()
  const found: [string, string, string][] = []
  for (const text of texts) {
    const cron = accepted(text)
    if (cron === undefined) continue
    const [meaning, said] = [meaningOf(cron), cronInWords(cron)]
    const [sameMeaning = text, sameWords = text] = [byMeaning.get(meaning), byWords.get(said)]
    byMeaning.set(meaning, sameMeaning)
    byWords.set(said, sameWords)
    if (sameMeaning !== sameWords) found.push([said, sameMeaning, sameWords])
  }
  return found
}

const numbersOf = (min: number, max: number) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant('*') },
    fc.integer({ min, max }).map(String),
    fc.integer({ min: 1, max: max + 5 }).map((step) => `*/${step}`),
    fc.tuple(fc.integer({ min, max }), fc.integer({ min, max })).map(([from, to]) => `${from}-${to}`),
    fc.tuple(fc.integer({ min, max }), fc.integer({ min: 1, max: 9 })).map(([from, step]) => `${from}/${step}`),
  )
const listOf = (item: fc.Arbitrary<string>) => fc.array(item, { minLength: 1, maxLength: 3 }).map((items) => items.join(','))
const weekday = fc.constantFrom(
  '0',
  '7',
  'MON',
  'tue',
  'FRI-SUN',
  'SAT-MON',
  '*/2',
  'MON#1',
  '5#2',
  'TUE-THU#3',
  '3#5',
  'L5',
  'l0',
)
const anyCron = fc
  .tuple(
    fc.option(listOf(numbersOf(0, 59)), { nil: '' }),
    listOf(numbersOf(0, 59)),
    listOf(numbersOf(0, 23)),
    fc.oneof(listOf(numbersOf(1, 31)), fc.constantFrom('?', 'L', '15,L', '20-L')),
    fc.oneof(listOf(numbersOf(1, 12)), fc.constantFrom('JAN', 'NOV-FEB', 'jun,jul')),
    fc.oneof(fc.constantFrom('*', '?'), listOf(weekday)),
  )
  .map((parts) => parts.join(' ').trim())
  .filter((text) => accepted(text) !== undefined)

describe('words of any expression', () => {
  test('are there, and have no holes', () => {
    const property = fc.property(anyCron, (text) => {
      expect(words(text)).toMatch(/^(?:at|every) [\w :,()-]+$/)
      expect(words(text)).not.toMatch(/undefined|NaN| {2}| ,|,,|(?:and|or|of|on|in|at|to|from|the) *(?:$|,)/)
    })
    fc.assert(property, { numRuns: 2_000 })
  })

  test('do not depend on how its numbers are written', () => {
    const property = fc.property(anyCron, fc.infiniteStream(fc.nat()), (text, dice) => {
      const cron = parseCron(text)
      const shuffled = (numbers: Iterable<number>) =>
        [...numbers]
          .map((number) => [number, dice.next().value ?? 0] as const)
          .sort(([, a], [, b]) => a - b)
          .map(([number]) => number)
          .join(',')
      const [weekdays = '*', , days = '*'] = text.split(/\s+/).reverse()
      const times = [cron.seconds, cron.minutes, cron.hours].map(shuffled)
      expect(words([...times, days, shuffled(cron.months), weekdays].join(' '))).toBe(words(text))
    })
    fc.assert(property, { numRuns: 500 })
  })

  test('are the same for the same times, and for no others', () => {
    const seconds = ['0', '*', '30', '*/20', '1,2', '5-9', '5/15']
    const minutes = ['0', '*', '5', '*/15', '*/7', '10-20', '0,30', '5,20,35,50', '50-10', '1,2,7', '0-59', '*/1']
    const hours = [
      '*',
      '0-23',
      '5',
      '9-17',
      '22-4',
      '*/2',
      '22-4/2',
      '*/5',
      '0,12',
      '9,12,17',
      '0-4,9-14,20',
      '1/2',
      '0-23/2',
      '23,0,1',
    ]
    for (const days of ['* * *', '* * MON', '* 1 *']) {
      expect(confused(combined(seconds, minutes, hours).map((time) => `${time} ${days}`))).toEqual([])
    }
  })

  test('are the same for the same days, and for no others', () => {
    const days = [
      '*',
      '?',
      '1',
      '1-31',
      '31',
      '30',
      '29',
      'L',
      '31,L',
      '28-30,L',
      '29-L',
      '1,15',
      '*/10',
      '*/2',
      '1-28,L',
      '1-30',
    ]
    const months = ['*', '1-12', '2', '4', '4,5', '1,3,5,7,8,10,12', '*/3', 'NOV-JAN', 'FEB,APR']
    const weekly = ['*', '0-6', 'MON', '1-5', 'SAT-MON', '*/2', '6,7', '1,3,5']
    const counted = ['MON#2', 'MON#4,L1', 'MON#5,L1', 'L1', 'MON#1,MON#2,MON#3,MON#4,L1', '1-3', 'MON-WED#2', 'SUN,5#2', '5#5']
    expect(confused(combined(['0 0'], days, months, weekly))).toEqual([])
    expect(confused(combined(['0 0'], ['*'], months, [...weekly, ...counted]))).toEqual([])
  })
})
