import { daysInMonth } from '../lib/calendar.ts'
import { badCron, badField, digits, type Field, fields, oneValue, valuesOf } from './cron-field.ts'

/** The days and times that an expression names, on the clock and the calendar of any zone. */
export interface Cron {
  readonly text: string
  /** Ascending, as are minutes and hours. */
  readonly seconds: readonly number[]
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  /** All hours are named: ticks then follow the time that passes when clocks are changed, not the clock. */
  readonly everyHour: boolean
  readonly months: ReadonlySet<number>
  /** Undefined when any day will do, as are weekdays. When both are given, a day needs to match only one of them. */
  readonly days: DaysOfMonth | undefined
  readonly weekdays: Weekdays | undefined
}

export interface DaysOfMonth {
  readonly numbers: ReadonlySet<number>
  readonly last: boolean
}

export interface Weekdays {
  readonly all: ReadonlySet<number>
  /** `weekday * 8 + n` for the n-th one of the month; n = 0 is the last one. */
  readonly nth: ReadonlySet<number>
}

const aliases: Readonly<Record<string, string>> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
}

/** Sixty seconds, minutes and so on written out as lists fit into this several times. */
const LONGEST = 1_000

export function parseCron(text: string): Cron {
  const trimmed = text.trim()
  if (trimmed.length > LONGEST) throw badCron(text, `it is longer than ${LONGEST} characters`, 'Write ranges and steps.')
  const words = expand(trimmed).split(/\s+/)
  if (trimmed === '' || words.length < 5 || words.length > 6) {
    const count = trimmed === '' ? 'nothing in it' : `${words.length} field${words.length === 1 ? '' : 's'}`
    throw badCron(
      text,
      `it has ${count}`,
      'Write minute, hour, day of month, month and weekday, such as 0 6 * * MON-FRI; a sixth field in front is the second.',
    )
  }
  const [second, minute, hour, day = '', month, weekday = ''] = words.length === 6 ? words : ['0', ...words]
  const list = (word = '', field: Field) =>
    [...new Set(itemsOf(word).flatMap((item) => valuesOf(item, field, text)))].sort(ascending)
  // From left to right, so that of several mistakes the first is named.
  const seconds = list(second, fields.second)
  const minutes = list(minute, fields.minute)
  const hours = list(hour, fields.hour)
  const cron: Cron = {
    text: trimmed,
    seconds,
    minutes,
    hours,
    everyHour: hours.length === fields.hour.size,
    months: new Set(list(month, fields.month)),
    days: daysOf(any(day), any(weekday), text),
    weekdays: weekdaysOf(any(weekday), any(day), text),
  }
  if (!isPossible(cron)) {
    throw badCron(
      text,
      'it never fires: none of its months has one of its days',
      'Name a day that exists, or L for the last day of the month.',
    )
  }
  return cron
}

function expand(text: string): string {
  if (!text.startsWith('@')) return text
  const meaning = Object.hasOwn(aliases, text.toLowerCase()) ? aliases[text.toLowerCase()] : undefined
  if (meaning !== undefined) return meaning
  throw badCron(text, 'unknown alias', `Write one of ${Object.keys(aliases).join(' ')}, or five fields.`)
}

const ascending = (a: number, b: number) => a - b
const itemsOf = (word: string) => word.split(',')
/** Other crons want ? in one of the two day fields where any day will do. */
const any = (word: string) => (word === '?' ? '*' : word)

// True if a day field leaves the choice to the other one. As in Dagster, that depends on a plain `*`, not on the values named:
// `0 0 13 * 0-6` is the 13th or any weekday, so every day. Only beside a `*`, as in `0 0 1-31 * */2`, and beside weekdays that are
// counted, as in `0 0 1-31 * MON#2`, does naming all days restrict nothing.
function isAny(word: string, named: ReadonlySet<number>, field: Field, other: string): boolean {
  return itemsOf(word).includes('*') || (named.size === field.size && /\*|#|L\d/i.test(other))
}

function daysOf(word: string, weekday: string, text: string): DaysOfMonth | undefined {
  const items = itemsOf(word)
  const numbers = new Set(
    items.filter((item) => item.toUpperCase() !== 'L').flatMap((item) => valuesOf(item, fields.day, text)),
  )
  const last = items.some((item) => item.toUpperCase() === 'L')
  return isAny(word, numbers, fields.day, weekday) ? undefined : { numbers, last }
}

function weekdaysOf(word: string, day: string, text: string): Weekdays | undefined {
  const all = new Set<number>()
  const nth = new Set<number>()
  for (const item of itemsOf(word)) {
    const some = nthWeekdays(item, text)
    if (some !== undefined) for (const one of some) nth.add(one)
    else for (const value of valuesOf(item, fields.weekday, text)) all.add(value)
  }
  return isAny(word, all, fields.weekday, day) ? undefined : { all, nth }
}

/** `1#2`, `MON#2`, `MON-FRI#2`, and `L5` for the last Friday. */
function nthWeekdays(item: string, text: string): number[] | undefined {
  const [, last] = /^L(\d)$/i.exec(item) ?? []
  if (last !== undefined) return [(oneValue(last, fields.weekday, text) % 7) * 8]
  const [word = '', which, ...rest] = item.split('#')
  if (which === undefined) return undefined
  const n = digits(which)
  if (rest.length > 0 || n === undefined || n < 1 || n > 5) {
    throw badField(fields.weekday, item, text, '# is followed by 1 to 5: which of those weekdays in the month')
  }
  const days = /^[a-z]+-[a-z]+$/i.test(word) ? valuesOf(word, fields.weekday, text) : [oneValue(word, fields.weekday, text)]
  return days.map((day) => (day % 7) * 8 + n)
}

/** 29 February exists, 30 February does not: an author who writes it with a weekday means something else. */
function isPossible({ days, months }: Cron): boolean {
  if (days === undefined || days.last) return true
  const smallest = Math.min(...days.numbers)
  return [...months].some((month) => smallest <= daysInMonth(2024, month))
}

/** True if there are ticks on a day, given its date, weekday and the length of its month. */
export function matchesDay(cron: Cron, month: number, day: number, weekday: number, monthLength: number): boolean {
  if (!cron.months.has(month)) return false
  const { days, weekdays } = cron
  if (days === undefined && weekdays === undefined) return true
  if (days !== undefined && (days.numbers.has(day) || (days.last && day === monthLength))) return true
  if (weekdays === undefined) return false
  const { all, nth } = weekdays
  return (
    all.has(weekday) ||
    (nth.size > 0 && (nth.has(weekday * 8 + Math.ceil(day / 7)) || (day > monthLength - 7 && nth.has(weekday * 8))))
  )
}
