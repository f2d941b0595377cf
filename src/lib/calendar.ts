import { DAY_MS } from './time.ts'

/** Days of the Gregorian calendar are numbered from 1970-01-01, which is 0; months from 1, weekdays from Sunday, which is 0. */
export interface CalendarDate {
  readonly year: number
  readonly month: number
  readonly day: number
}

export function dayNumber(year: number, month: number, day: number): number {
  return Date.UTC(year, month - 1, day) / DAY_MS
}

export function dateOf(dayNumber: number): CalendarDate {
  const date = new Date(dayNumber * DAY_MS)
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() }
}

export function weekdayOf(dayNumber: number): number {
  // The first day of 1970 was a Thursday.
  return (((dayNumber + 4) % 7) + 7) % 7
}

export function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

export function daysInMonth(year: number, month: number): number {
  if (month === 2) return isLeapYear(year) ? 29 : 28
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}

/** The week of ISO 8601: from Monday on, and of the year that has its Thursday. */
export function isoWeek(dayNumber: number): { readonly year: number; readonly week: number } {
  const thursday = dayNumber - ((weekdayOf(dayNumber) + 6) % 7) + 3
  const { year } = dateOf(thursday)
  return { year, week: 1 + Math.floor((thursday - firstDayOf(year)) / 7) }
}

/** The Monday of an ISO week. */
export function isoWeekStart(year: number, week: number): number {
  const fourth = dayNumber(year, 1, 4)
  return fourth - ((weekdayOf(fourth) + 6) % 7) + (week - 1) * 7
}

const firstDays = new Map<number, number>()

/** Asked for with every key of a window, so that each year is worked out once. */
export function firstDayOf(year: number): number {
  const known = firstDays.get(year)
  if (known !== undefined) return known
  const day = dayNumber(year, 1, 1)
  firstDays.set(year, day)
  return day
}
