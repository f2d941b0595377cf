import { daysInMonth } from '../lib/calendar.ts'
import { fields } from './cron-field.ts'
import type { Cron, DaysOfMonth, Weekdays } from './parse-cron.ts'

/** The days of an expression in the form that all expressions with the same days share, as far as that is cheap to find. */
export interface NamedDays {
  /** Ascending, as are all lists of numbers here. */
  readonly months: readonly number[]
  /** Undefined where any day will do, as are weekdays; a day needs to match only one of them. */
  readonly days: { readonly numbers: readonly number[]; readonly last: boolean } | undefined
  readonly weekdays: NamedWeekdays | undefined
}

export interface NamedWeekdays {
  /** Weekdays that count each week, from Sunday, which is 0. */
  readonly all: readonly number[]
  /** Weekdays that are counted in their month: `ranks` are 1 to 5. */
  readonly nth: readonly { readonly weekday: number; readonly ranks: readonly number[]; readonly last: boolean }[]
}

const ALL_MONTHS = Array.from({ length: fields.month.size }, (_, index) => index + 1)
/** Every weekday comes four or five times in a month. */
const WEEKDAY_COUNTS = [4, 5]

export function namedDays(cron: Cron): NamedDays {
  const weekdays = cron.weekdays && plainWeekdays(cron.weekdays)
  const months = [...cron.months].sort(ascending)
  const { days: written } = cron
  if (written === undefined) return { months, days: undefined, weekdays: isEveryDay(weekdays) ? undefined : weekdays }

  const lengths = months.filter((month) => hasSome(written, month)).flatMap(lengthsOf)
  const days = plainRanks([...written.numbers], written.last, lengths)
  const isEvery = days.numbers.length === Math.max(...lengths)
  if (isEvery || isEveryDay(weekdays)) return { months, days: undefined, weekdays: undefined }
  return { months: weekdays === undefined ? monthsThatCount(days, months) : months, days, weekdays }
}

/** How many days a month may have. */
export const lengthsOf = (month: number): number[] => (month === 2 ? [28, 29] : [daysInMonth(2024, month)])

const ascending = (a: number, b: number) => a - b

const isEveryDay = (weekdays: NamedWeekdays | undefined) => weekdays?.all.length === fields.weekday.size

type Days = NonNullable<NamedDays['days']>

const hasSome = ({ numbers, last }: Days | DaysOfMonth, month: number) =>
  last || Math.min(...numbers) <= Math.max(...lengthsOf(month))

/**
 * A month that has none of the days says nothing, so that it may be named or not. The 31st of all months that have one is the 31st
 * of every month.
 */
function monthsThatCount(days: Days, months: readonly number[]): readonly number[] {
  const isEvery = ALL_MONTHS.every((month) => months.includes(month) || !hasSome(days, month))
  return isEvery ? ALL_MONTHS : months.filter((month) => hasSome(days, month))
}

/**
 * Positions in a month, counted from its beginning, and whether the last one counts too. A month has as many positions as one of
 * `lengths` says. The last one goes without saying when the positions cover it in all months, and a position that is the last one
 * in each month that has it goes without saying beside the last one: 31 beside L.
 */
function plainRanks(ranks: readonly number[], last: boolean, lengths: readonly number[]): { numbers: number[]; last: boolean } {
  const longest = Math.max(...lengths)
  const numbers = new Set(ranks.filter((rank) => rank <= longest))
  if (!last) return { numbers: [...numbers].sort(ascending), last }
  const isCovered = lengths.every((length) => length === longest || numbers.has(length))
  if (isCovered) numbers.add(longest)
  else numbers.delete(longest)
  return { numbers: [...numbers].sort(ascending), last: !isCovered }
}

function plainWeekdays({ all, nth }: Weekdays): NamedWeekdays {
  const each = Array.from({ length: fields.weekday.size }, (_, weekday) => {
    const ranks = WEEKDAY_RANKS.filter((rank) => nth.has(weekday * 8 + rank))
    const { numbers, last } = plainRanks(ranks, nth.has(weekday * 8), WEEKDAY_COUNTS)
    return { weekday, ranks: numbers, last, isAll: all.has(weekday) || numbers.length === WEEKDAY_RANKS.length }
  })
  return {
    all: each.filter(({ isAll }) => isAll).map(({ weekday }) => weekday),
    nth: each
      .filter(({ isAll, ranks, last }) => !isAll && (ranks.length > 0 || last))
      .map(({ weekday, ranks, last }) => ({ weekday, ranks, last })),
  }
}

const WEEKDAY_RANKS = [1, 2, 3, 4, 5]
