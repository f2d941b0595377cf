import { daysInMonth, firstDayOf, isLeapYear, weekdayOf } from '../lib/calendar.ts'
import { lastAtMost } from '../lib/collections/binary-search.ts'
import { DAY_MS, SECOND_MS } from '../lib/time.ts'
import { type Cron, matchesDay } from './parse-cron.ts'

/** Before 1900 clocks followed the sun of their town; after 2199 the rules of a zone are unknown. */
export const FIRST_YEAR = 1900
export const LAST_YEAR = 2199
export const isCounted = (wallMs: number) => wallMs >= Date.UTC(FIRST_YEAR, 0) && wallMs < Date.UTC(LAST_YEAR + 1, 0)
const YEARS = LAST_YEAR - FIRST_YEAR + 1

/**
 * The days of a year by what happens on them. There are fourteen such years, leap or not and beginning on any weekday, or two where
 * no weekday is named.
 */
interface YearKind {
  /** Which list of times each day has. */
  readonly times: readonly Int32Array[]
  /** How many ticks there are before each day. */
  readonly before: Int32Array
  /** How many ticks the whole year has. */
  readonly total: number
}

const NO_TIMES = new Int32Array()

/**
 * The ticks of an expression as the clock on the wall shows them, as if no clock were ever changed. A moment is the
 * milliseconds that UTC would have when it shows the same. Both questions, how many before and which is the n-th, cost two
 * binary searches: over the 300 years and over the times of a day.
 */
export class WallTimes {
  private readonly cron: Cron
  /** Expressions whose ticks are left out. */
  private readonly without: readonly Cron[]
  private readonly namesWeekdays: boolean
  private readonly kinds = new Map<number, YearKind>()
  private readonly timesOf = new Map<string, Int32Array>()
  /** How many ticks there are before each year. */
  private readonly beforeYear = new Float64Array(YEARS)
  private readonly total: number

  constructor(cron: Cron, without: readonly Cron[] = []) {
    this.cron = cron
    this.without = without
    this.namesWeekdays = [cron, ...without].some(({ weekdays }) => weekdays !== undefined)
    let total = 0
    for (let index = 0; index < YEARS; index++) {
      this.beforeYear[index] = total
      total += this.kindOf(FIRST_YEAR + index).total
    }
    this.total = total
  }

  /** How many ticks there are before a moment. */
  before(wallMs: number): number {
    const day = Math.floor(wallMs / DAY_MS)
    const year = new Date(wallMs).getUTCFullYear()
    if (!(year >= FIRST_YEAR)) return 0
    if (year > LAST_YEAR) return this.total
    const kind = this.kindOf(year)
    const index = day - firstDayOf(year)
    const inDay = countBelow(kind.times[index] ?? NO_TIMES, (wallMs - day * DAY_MS) / SECOND_MS)
    return (this.beforeYear[year - FIRST_YEAR] ?? 0) + (kind.before[index] ?? 0) + inDay
  }

  /** The tick that has n before it; undefined outside of the years we know. */
  at(n: number): number | undefined {
    if (n < 0 || n >= this.total) return undefined
    const yearIndex = lastAtMost(this.beforeYear, n)
    const kind = this.kindOf(FIRST_YEAR + yearIndex)
    const inYear = n - (this.beforeYear[yearIndex] ?? 0)
    const index = lastAtMost(kind.before, inYear)
    const times = kind.times[index] ?? NO_TIMES
    const second = times[inYear - (kind.before[index] ?? 0)] ?? 0
    return (firstDayOf(FIRST_YEAR + yearIndex) + index) * DAY_MS + second * SECOND_MS
  }

  has(wallMs: number): boolean {
    return this.before(wallMs + 1) > this.before(wallMs)
  }

  private kindOf(year: number): YearKind {
    const id = (this.namesWeekdays ? weekdayOf(firstDayOf(year)) * 2 : 0) + (isLeapYear(year) ? 1 : 0)
    const known = this.kinds.get(id)
    if (known !== undefined) return known
    const kind = this.makeKind(year)
    this.kinds.set(id, kind)
    return kind
  }

  private makeKind(year: number): YearKind {
    const times: Int32Array[] = []
    let weekday = weekdayOf(firstDayOf(year))
    for (let month = 1; month <= 12; month++) {
      const length = daysInMonth(year, month)
      for (let day = 1; day <= length; day++) {
        const onThisDay = (cron: Cron) => matchesDay(cron, month, day, weekday, length)
        times.push(onThisDay(this.cron) ? this.timesWithout(this.without.map(onThisDay)) : NO_TIMES)
        weekday = (weekday + 1) % 7
      }
    }
    const before = new Int32Array(times.length)
    let total = 0
    for (const [index, { length }] of times.entries()) {
      before[index] = total
      total += length
    }
    return { times, before, total }
  }

  /** Seconds of the day, for days on which these of the expressions to leave out have ticks. */
  private timesWithout(left: readonly boolean[]): Int32Array {
    const id = left.map(Number).join('')
    const known = this.timesOf.get(id)
    if (known !== undefined) return known
    const leaving = this.without.filter((_, index) => left[index])
    const { hours, minutes, seconds } = this.cron
    const times: number[] = []
    for (const hour of hours) {
      for (const minute of minutes) {
        for (const second of seconds) {
          const leftOut = leaving.some(
            (it) => it.hours.includes(hour) && it.minutes.includes(minute) && it.seconds.includes(second),
          )
          if (!leftOut) times.push((hour * 60 + minute) * 60 + second)
        }
      }
    }
    const list = Int32Array.from(times)
    this.timesOf.set(id, list)
    return list
  }
}

/**
 * How many of the ascending numbers are less than a limit. This is `countWhile`, written out: a call for every step would take a
 * fifth longer, and all that counts windows ends here.
 */
function countBelow(numbers: Int32Array, limit: number): number {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((numbers[middle] ?? 0) < limit) low = middle + 1
    else high = middle
  }
  return low
}
