import { fields } from './cron-field.ts'
import type { Cron } from './parse-cron.ts'
import {
  afterWidestGap,
  inSeries,
  type NumberRun,
  ordinal,
  type Progression,
  progressionOf,
  runsOf,
  seriesWithRuns,
  stepThrough,
} from './word-lists.ts'

interface TimesInWords {
  readonly words: string
  /** The words name times of a day, so that the reader asks: of which day? */
  readonly namesTimes: boolean
}

/** More times than this are not listed one by one when there is a rule. */
const LISTED = 3
/** More than this are not listed without one either, when minutes and hours can be said apart. */
const LISTED_APART = 6

type Times = Pick<Cron, 'seconds' | 'minutes' | 'hours'>

/** The times of a day. Those of a schedule for every day may pass midnight: from 22:00 to 04:00. */
export function timesInWords(times: Times, everyDay: boolean): TimesInWords {
  const { seconds, minutes, hours } = times
  const hasSeconds = !isZero(seconds)
  if (hours.length === fields.hour.size) {
    return { words: hasSeconds ? secondsOfHours(times) : minutesOfHours(minutes), namesTimes: false }
  }
  const everyHours = stepThrough(hours, fields.hour.size)
  const count = seconds.length * minutes.length * hours.length
  if (count > LISTED && everyHours !== undefined && isZero(minutes) && !hasSeconds) {
    return { words: everyStep(everyHours, 'hour'), namesTimes: false }
  }
  const words = count <= LISTED ? `at ${inSeries(clockTimes(times))}` : manyTimes(times, everyDay)
  return { words, namesTimes: true }
}

const isZero = (numbers: readonly number[]) => numbers.length === 1 && numbers[0] === 0

function clockTimes({ seconds, minutes, hours }: Times): string[] {
  const withSeconds = !isZero(seconds)
  return hours.flatMap((hour) =>
    minutes.flatMap((minute) => seconds.map((second) => clockTime(hour, minute, withSeconds ? second : undefined))),
  )
}

function clockTime(hour: number, minute: number, second?: number): string {
  const parts = second === undefined ? [hour % 24, minute] : [hour % 24, minute, second]
  return parts.map((part) => String(part).padStart(2, '0')).join(':')
}

/** `every minute`, `every 5 minutes`. */
const everyStep = (step: number, unit: string) => (step === 1 ? `every ${unit}` : `every ${step} ${unit}s`)

function minutesOfHours(minutes: readonly number[]): string {
  if (isZero(minutes)) return 'every hour'
  const step = stepThrough(minutes, fields.minute.size)
  return step === undefined ? `${pastWords(minutes, 'minute')} past every hour` : everyStep(step, 'minute')
}

function secondsOfHours({ seconds, minutes }: Times): string {
  const step = stepThrough(seconds, fields.second.size)
  if (minutes.length === fields.minute.size) {
    return step === undefined ? `${pastWords(seconds, 'second')} past every minute` : everyStep(step, 'second')
  }
  if (isZero(minutes) && step === undefined) return `${pastWords(seconds, 'second')} past every hour`
  return `${secondsIn(seconds)} ${minutesNoun(minutes)} of every hour`
}

/** `at 5 and 20 minutes`, `every 7 minutes from 0 to 56 minutes`: what comes before `past every hour`. */
function pastWords(numbers: readonly number[], unit: string): string {
  const progression = progressionOf(numbers)
  if (progression !== undefined) {
    const { from, to, step } = progression
    return `${everyStep(step, unit)} from ${from} to ${to} ${unit}s`
  }
  const isOne = numbers.length === 1 && numbers[0] === 1
  return `at ${inSeries(seriesWithRuns(numbers))} ${unit}${isOne ? '' : 's'}`
}

/** What comes before the minutes that these are seconds of. */
function secondsIn(seconds: readonly number[]): string {
  const step = stepThrough(seconds, fields.second.size)
  return step === undefined ? `${pastWords(seconds, 'second')} past` : `${everyStep(step, 'second')} in`
}

function minutesNoun(minutes: readonly number[]): string {
  const whole = stepThrough(minutes, fields.minute.size)
  if (whole !== undefined) return whole === 1 ? 'every minute' : `every ${ordinal(whole)} minute`
  const progression = progressionOf(minutes)
  if (progression !== undefined && progression.step > 1) {
    return `every ${ordinal(progression.step)} minute from ${progression.from} to ${progression.to}`
  }
  return `minute${minutes.length === 1 ? '' : 's'} ${inSeries(seriesWithRuns(minutes))}`
}

/** More times than can be listed, at some hours. */
function manyTimes(times: Times, everyDay: boolean): string {
  const { seconds, minutes, hours } = times
  if (!isZero(seconds)) return manySeconds(times, everyDay)
  const [minute = 0] = minutes
  if (minutes.length === 1) return hourly(hours, minute, everyDay)
  const step = stepThrough(minutes, fields.minute.size)
  if (step !== undefined) {
    const last = minutes.at(-1) ?? 0
    return throughHours(everyStep(step, 'minute'), hours, everyDay, [
      (hour) => clockTime(hour, 0),
      (hour) => clockTime(hour, last),
    ])
  }
  const progression = progressionOf(minutes)
  const [hour = 0] = hours
  if (hours.length === 1 && progression !== undefined) {
    const { from, to } = progression
    return `${everyStep(progression.step, 'minute')} from ${clockTime(hour, from)} to ${clockTime(hour, to)}`
  }
  if (minutes.length * hours.length <= LISTED_APART) return `at ${inSeries(clockTimes(times))}`
  return `${pastWords(minutes, 'minute')} past ${hoursNoun(hours, everyDay) ?? inSeries(beginnings(hours))}`
}

const beginnings = (hours: readonly number[]) => hours.map((hour) => clockTime(hour, 0))

/** The rule of hours that have one, through midnight where that is no border. */
function ruleOf(hours: readonly number[], everyDay: boolean): Progression | undefined {
  return progressionOf(hours) ?? (everyDay ? progressionOf(afterWidestGap(hours, fields.hour.size)) : undefined)
}

/** Hours that follow each other, through midnight where that is no border: 22 to 25 for 0, 1, 22 and 23. */
function hourRuns(hours: readonly number[], everyDay: boolean): NumberRun[] {
  const runs = runsOf(hours)
  const [first, last] = [runs[0], runs.at(-1)]
  const isJoined = everyDay && runs.length > 1 && first?.from === 0 && last?.to === fields.hour.size - 1
  return isJoined ? [...runs.slice(1, -1), { from: last.from, to: first.to + fields.hour.size }] : runs
}

/** At one minute of several hours. */
function hourly(hours: readonly number[], minute: number, everyDay: boolean): string {
  const progression = ruleOf(hours, everyDay)
  const span = (from: number, to: number) => `from ${clockTime(from, minute)} to ${clockTime(to, minute)}`
  if (progression !== undefined) return `${everyStep(progression.step, 'hour')} ${span(progression.from, progression.to)}`
  const long = hourRuns(hours, everyDay).filter(({ from, to }) => to - from >= LISTED)
  const single = hours.filter((hour) => !long.some(({ from, to }) => isWithin(hour, from, to)))
  const times = `at ${inSeries(single.map((hour) => clockTime(hour, minute)))}`
  if (long.length === 0) return times
  const spans = `every hour ${inSeries(long.map(({ from, to }) => span(from, to)))}`
  return single.length === 0 ? spans : `${spans}, and ${times}`
}

const isWithin = (hour: number, from: number, to: number) =>
  (hour >= from && hour <= to) || (hour + fields.hour.size >= from && hour + fields.hour.size <= to)

/** What happens all through some hours, given how its first and its last time in an hour are written. */
function throughHours(
  what: string,
  hours: readonly number[],
  everyDay: boolean,
  [first, last]: readonly [(hour: number) => string, (hour: number) => string],
): string {
  const runs = hourRuns(hours, everyDay)
  if (runs.length <= LISTED) return `${what} ${inSeries(runs.map(({ from, to }) => `from ${first(from)} to ${last(to)}`))}`
  const progression = progressionOf(hours)
  if (progression === undefined) return `${what} in the hours that begin at ${inSeries(beginnings(hours))}`
  const { from, to, step } = progression
  return `${what} in every ${ordinal(step)} hour, from ${first(from)} to ${last(to)}`
}

function manySeconds({ seconds, minutes, hours }: Times, everyDay: boolean): string {
  const step = stepThrough(seconds, fields.second.size)
  const last = seconds.at(-1) ?? 0
  if (step !== undefined && minutes.length === fields.minute.size) {
    const ends = [(hour: number) => clockTime(hour, 0, 0), (hour: number) => clockTime(hour, 59, last)] as const
    return throughHours(everyStep(step, 'second'), hours, everyDay, ends)
  }
  const [hour = 0] = hours
  const [minute = 0] = minutes
  const progression = progressionOf(seconds)
  if (hours.length === 1 && minutes.length === 1 && progression !== undefined) {
    const { from, to } = progression
    return `${everyStep(progression.step, 'second')} from ${clockTime(hour, minute, from)} to ${clockTime(hour, minute, to)}`
  }
  const begin = `the hour${hours.length === 1 ? ' that begins' : 's that begin'} at ${inSeries(beginnings(hours))}`
  return `${secondsIn(seconds)} ${minutesNoun(minutes)} of ${hoursNoun(hours, everyDay) ?? begin}`
}

/** Hours that follow a rule. */
function hoursNoun(hours: readonly number[], everyDay: boolean): string | undefined {
  const progression = ruleOf(hours, everyDay)
  if (progression === undefined) return undefined
  const { from, to, step } = progression
  const which = step === 1 ? 'every hour' : `every ${ordinal(step)} hour`
  return `${which} from ${clockTime(from, 0)} to ${clockTime(to, 0)}`
}
