import { daysInMonth, firstDayOf, isLeapYear, weekdayOf } from '../lib/calendar.ts'
import { namedDays } from './named-days.ts'
import { type Cron, matchesDay } from './parse-cron.ts'

/** How often an expression ticks when no clock is changed. */
export interface HowOften {
  /** Ticks on a day that has any. */
  readonly perDay: number
  /** Ticks in a week; undefined when weeks differ. */
  readonly perWeek: number | undefined
  /** Days with ticks, and ticks, in an average year. */
  readonly daysPerYear: number
  readonly perYear: number
  /** Not all years have the same number of them. */
  readonly yearsDiffer: boolean
}

/** After this many years the calendar begins again, on the same weekday. */
const CYCLE_YEARS = 400

export function howOften(cron: Cron): HowOften {
  const { months, days, weekdays } = namedDays(cron)
  const perDay = cron.seconds.length * cron.minutes.length * cron.hours.length
  const years = daysInYears(cron)
  const daysPerYear = years.reduce((sum, count) => sum + count, 0) / CYCLE_YEARS
  const isWeekly = months.length === 12 && days === undefined && (weekdays?.nth.length ?? 0) === 0
  const perWeek = isWeekly ? perDay * (weekdays?.all.length ?? 7) : undefined
  const yearsDiffer = years.some((count) => count !== years[0])
  return { perDay, perWeek, daysPerYear, perYear: daysPerYear * perDay, yearsDiffer }
}

/** Years differ by their first weekday and by whether they are leap years, so that only fourteen of the 400 are looked through. */
function daysInYears(cron: Cron): number[] {
  const kinds = new Map<number, number>()
  return Array.from({ length: CYCLE_YEARS }, (_, index) => {
    const year = 2000 + index
    const kind = weekdayOf(firstDayOf(year)) * 2 + (isLeapYear(year) ? 1 : 0)
    const count = kinds.get(kind) ?? daysInYear(cron, year)
    kinds.set(kind, count)
    return count
  })
}

function daysInYear(cron: Cron, year: number): number {
  let count = 0
  let weekday = weekdayOf(firstDayOf(year))
  for (let month = 1; month <= 12; month++) {
    const length = daysInMonth(year, month)
    for (let day = 1; day <= length; day++) {
      if (matchesDay(cron, month, day, weekday, length)) count += 1
      weekday = (weekday + 1) % 7
    }
  }
  return count
}

/** `5 times a week, about 261 a year`. */
export function howOftenInWords(often: HowOften): string {
  const { perDay, perWeek, daysPerYear, perYear, yearsDiffer } = often
  const average = (count: number) => `${yearsDiffer ? 'about ' : ''}${numeral(Math.round(count))}`
  if (perWeek === undefined) {
    if (daysPerYear < 1) return inCycle(often)
    if (perDay === 1) return `${yearsDiffer ? `${average(perYear)} times` : times(perYear)} a year`
    const days = perYear === perDay && !yearsDiffer ? 'one day' : `${average(daysPerYear)} days`
    return `${times(perDay)} a day on ${days} a year, ${average(perYear)} a year`
  }
  const days = perWeek / perDay
  const year = `${average(perYear)} a year`
  if (days === 7) return `${times(perDay)} a day, ${numeral(perWeek)} a week, ${year}`
  if (perDay === 1) return `${times(perWeek)} a week, ${year}`
  return `${times(perDay)} a day on ${days === 1 ? 'one day' : `${days} days`} a week, ${numeral(perWeek)} a week, ${year}`
}

/** So rarely that an average year says nothing. */
function inCycle({ perDay, daysPerYear }: HowOften): string {
  const days = Math.round(daysPerYear * CYCLE_YEARS)
  return `${perDay === 1 ? times(days) : `${times(perDay)} a day on ${days} days`} in ${CYCLE_YEARS} years`
}

const numeral = (count: number) => count.toLocaleString('en')
const times = (count: number) => (count === 1 ? 'once' : count === 2 ? 'twice' : `${numeral(count)} times`)
