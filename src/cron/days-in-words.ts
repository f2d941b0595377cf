import { lengthsOf, type NamedDays, type NamedWeekdays } from './named-days.ts'
import { afterWidestGap, inSeries, ordinal, progressionOf, runsOf, seriesWithRuns } from './word-lists.ts'

const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
]
const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const RANKS = ['first', 'second', 'third', 'fourth', 'fifth']

const monthName = (month: number) => MONTHS[(month - 1) % MONTHS.length] ?? ''
export const weekdayName = (weekday: number): string => WEEKDAYS[weekday % WEEKDAYS.length] ?? ''

/** On which days, such as `on Monday to Friday in January`. Empty when it is every day of the year. */
export function daysInWords({ months, days, weekdays }: NamedDays): string {
  if (days !== undefined && weekdays !== undefined) {
    const either = `on ${datesIn(days, 'the month')} or on ${weekdaysIn(weekdays, 'the month')} (either is enough)`
    return months.length === MONTHS.length ? either : `${either}, ${inMonths(months)}`
  }
  if (days !== undefined) return `on ${datesOf(days, months)}`
  if (weekdays === undefined) return inMonths(months)
  if (weekdays.nth.length === 0) return `on ${weekdaysIn(weekdays, '')} ${inMonths(months)}`.trimEnd()
  if (weekdays.all.length === 0) return `on ${weekdaysIn(weekdays, ofMonths(months))}`
  return `on ${weekdaysIn(weekdays, 'the month')} ${inMonths(months)}`.trimEnd()
}

/** Months from November to January are one run. */
function monthRun(months: readonly number[]): string | undefined {
  const [run, ...others] = runsOf(afterWidestGap(months, MONTHS.length))
  if (run === undefined || others.length > 0 || months.length < 3) return undefined
  return `from ${monthName(run.from)} to ${monthName(run.to)}`
}

function inMonths(months: readonly number[]): string {
  return months.length === MONTHS.length ? '' : (monthRun(months) ?? `in ${inSeries(months.map(monthName))}`)
}

function ofMonths(months: readonly number[]): string {
  if (months.length === MONTHS.length) return 'the month'
  const run = monthRun(months)
  return run === undefined ? inSeries(months.map(monthName)) : `every month ${run}`
}

type Dates = NonNullable<NamedDays['days']>

/** `31 December`, `the 1st of January and July`, `the last day of the month`. */
function datesOf(days: Dates, months: readonly number[]): string {
  const [month] = months
  if (month !== undefined && months.length === 1 && !days.last && stepOf(days) === undefined) {
    return `${inSeries(seriesWithRuns(days.numbers))} ${monthName(month)}`
  }
  return datesIn(days, ofMonths(months))
}

/** A list of four such as 1, 11, 21 and 31 is still said sooner than its rule. */
function stepOf({ numbers }: Dates) {
  const progression = numbers.length > 4 ? progressionOf(numbers) : undefined
  return progression !== undefined && progression.step > 1 ? progression : undefined
}

function datesIn(days: Dates, ofWhat: string): string {
  const step = stepOf(days)
  const numbers =
    step === undefined
      ? seriesWithRuns(days.numbers, ordinal)
      : [`every ${ordinal(step.step)} day from the ${ordinal(step.from)} to the ${ordinal(step.to)}`]
  const the = (word: string) => (step === undefined ? `the ${word}` : word)
  if (!days.last) return `${the(inSeries(numbers))} of ${ofWhat}`
  return `${inSeries([...numbers.map(the), 'the last day'])} of ${ofWhat}`
}

/** Weekdays in the order of a week that begins on Monday. */
const fromMonday = (weekday: number) => (weekday === 0 ? WEEKDAYS.length : weekday)

function weekdaysIn({ all, nth }: NamedWeekdays, ofWhat: string): string {
  const counted = [...nth]
    .sort((a, b) => fromMonday(a.weekday) - fromMonday(b.weekday))
    .map(({ weekday, ranks, last }) => {
      const which = [...ranks.map((rank) => RANKS[rank - 1] ?? ''), ...(last ? ['last'] : [])]
      return `the ${inSeries(which)} ${weekdayName(weekday)}`
    })
  const weekly = all.length === 0 ? [] : [everyWeek(all)]
  const monthly = counted.length === 0 ? [] : [`${inSeries(counted)} of ${ofWhat}`]
  return [...weekly, ...monthly].join(' and on ')
}

function everyWeek(weekdays: readonly number[]): string {
  const [run, ...others] = runsOf(afterWidestGap(weekdays, WEEKDAYS.length))
  if (run !== undefined && others.length === 0 && weekdays.length >= 3) {
    return `${weekdayName(run.from)} to ${weekdayName(run.to)}`
  }
  return inSeries([...weekdays].sort((a, b) => fromMonday(a) - fromMonday(b)).map(weekdayName))
}

/** What is passed over where a reader may not think of it: months without a 31st or a fifth Friday, and common years. */
export function passedOver({ months, days, weekdays }: NamedDays): string | undefined {
  const [counted, ...others] = weekdays?.nth ?? []
  const onlyFifth = counted !== undefined && others.length === 0 && counted.ranks[0] === 5 && !counted.last
  if (onlyFifth && weekdays?.all.length === 0 && days === undefined) {
    return `months without a fifth ${weekdayName(counted.weekday)} are passed over`
  }
  const [first] = days?.numbers ?? []
  if (first === undefined || days?.last || weekdays !== undefined) return undefined
  if (first <= Math.min(...months.flatMap(lengthsOf))) return undefined
  if (months.length === 1) return 'only leap years have that day'
  return months.length === MONTHS.length
    ? `months without a ${ordinal(first)} are passed over`
    : '29 February is there in leap years only'
}
