import { z } from 'zod'
import { newKey } from '../../contract/partition-keys.ts'
import { checkZoneName } from '../../cron/zone-name.ts'
import { isServoError } from '../../lib/error.ts'
import {
  type DimensionDefinition,
  type PartitionDefinition,
  type TimePartitions,
  timeDefinition,
} from '../../partitions/definition.ts'
import type { TimeUnit, UnitOptions } from '../../partitions/time/units.ts'
import { type TimeWindows, timeWindows } from '../../partitions/time/windows.ts'
import { invalid, show } from '../invalid.ts'
import { checkOptionNames } from '../option-names.ts'
import { issuesText } from '../standard-schema.ts'

export type DayKey = `${number}-${number}-${number}`
export type HourKey = `${DayKey}T${number}`
export type MinuteKey = `${DayKey}T${number}:${number}`
export type MonthKey = `${number}-${number}`
export type YearKey = `${number}`

/** The span of time of a partition: from `start` (included) to `end` (excluded). */
export interface Window {
  readonly start: Date
  readonly end: Date
}

/** Partitions as they are recorded. */
export type PartitionData = PartitionDefinition

/** Exists only in types: carries the types of key and window. */
declare const carries: unique symbol

/**
 * The partitions of an asset. `Key` is the type of a key, `Span` that of its window of time, if it has one, and `Kind` says how such
 * partitions compare with others: the unit of time, or those of all dimensions.
 */
export interface Partitions<Key, Span = undefined, Kind = unknown> {
  readonly data: PartitionData
  /** A schema of the key, for use in other schemas: `z.object({ day: day.key })`. */
  readonly key: z.ZodType<Key, Key>
  readonly [carries]?: { readonly key: Key; readonly span: Span; readonly kind: Kind }
}

/** Keys that are added and removed while the project runs. */
export interface DynamicPartitions extends Partitions<string, undefined, 'dynamic'> {
  readonly data: Extract<PartitionData, { type: 'dynamic' }>
}

export type AnyPartitions = Partitions<unknown, unknown>
export type KeyOf<P> = P extends { readonly [carries]?: { readonly key: infer Key } } ? Key : never
export type KindOf<P> = P extends { readonly [carries]?: { readonly kind: infer Kind } } ? Kind : never
export type SpanOf<P> = P extends { readonly [carries]?: { readonly span: infer Span } } ? Span : never

export interface TimeOptions<Start> {
  /** The key of the first window. */
  start: Start
  /** The key of the window before which to stop. */
  end?: Start
  /** The IANA time zone in which windows begin and end. Default: UTC. */
  timezone?: string
  /** How many windows exist before they close; if negative, how many closed windows to hold back. Default: 0. */
  endOffset?: number
  /** Windows to leave out: cron expressions of their starts, such as `0 0 * * SAT,SUN`, or single keys, such as holidays. */
  exclusions?: readonly string[]
}

/** Keys in a format of the author's own are plain text to the compiler. */
type KeyIn<Format, Key> = [Format] extends [never] ? Key : string

type Written<Format extends string, Key> = TimeOptions<KeyIn<Format, Key>> & {
  /** The format of keys, as in strftime: `%d.%m.%Y`. */
  format?: Format
}

/** Windows begin this many minutes past the hour. */
interface AtMinute {
  minute?: number
}
/** Windows begin at this hour of the day. */
interface AtHour extends AtMinute {
  hour?: number
}
/** Windows begin on this day of the month, up to the 28th. */
interface OnDay extends AtHour {
  day?: number
}
/** Windows begin in this month: of the year, or of the first quarter. */
interface InMonth extends OnDay {
  month?: number
}

type Time<Key, Unit = unknown> = Partitions<Key, Window, Unit>

/** Sixty minutes are an hour; a number that is computed is not known to the compiler. */
type Minutes<Every extends number> = number extends Every ? unknown : Every extends 60 ? 'hourly' : `${Every}m`

export function daily<Format extends string = never>(
  options: Written<Format, DayKey> & AtHour,
): Time<KeyIn<Format, DayKey>, 'daily'> {
  return timePartitions('daily', options)
}

/** Keys such as `2025-01-15T09`. The hour that clocks show twice in autumn is two windows, `…T02` and `…T02+0100`. */
export function hourly<Format extends string = never>(
  options: Written<Format, HourKey> & AtMinute,
): Time<KeyIn<Format, HourKey>, 'hourly'> {
  return timePartitions('hourly', options)
}

/** Keys such as `2025-01-15T09:30`. `every` is the length of a window in minutes, which must divide an hour. */
export function minutely<const Every extends number = 1, Format extends string = never>(
  options: Written<Format, MinuteKey> & { every?: Every },
): Time<KeyIn<Format, MinuteKey>, Minutes<Every>> {
  return timePartitions('minutely', options)
}

/** The key of a week is its first day. Weeks begin on `weekday` (0 is Sunday), or on the weekday of `start`. */
export function weekly<Format extends string = never>(
  options: Written<Format, DayKey> & AtHour & { weekday?: number },
): Time<KeyIn<Format, DayKey>, 'weekly'> {
  return timePartitions('weekly', options)
}

/** Keys such as `2025-01`. */
export function monthly<Format extends string = never>(
  options: Written<Format, MonthKey> & OnDay,
): Time<KeyIn<Format, MonthKey>, 'monthly'> {
  return timePartitions('monthly', options)
}

/** The key of a quarter is its first month, such as `2025-04`. */
export function quarterly<Format extends string = never>(
  options: Written<Format, MonthKey> & InMonth,
): Time<KeyIn<Format, MonthKey>, 'quarterly'> {
  return timePartitions('quarterly', options)
}

/** Keys such as `2025`. */
export function yearly<Format extends string = never>(
  options: Written<Format, YearKey> & InMonth,
): Time<KeyIn<Format, YearKey>, 'yearly'> {
  return timePartitions('yearly', options)
}

/** Windows from one tick of a cron expression to the next, named after their start: `2025-01-15T06:00`, or in the given `format`. */
export function cronWindows<const Expression extends string>(
  expression: Expression,
  options: TimeOptions<string> & { format?: string },
): Time<string, string extends Expression ? unknown : `cron ${Expression}`> {
  return timePartitions('cron', { ...options, cron: expression })
}

export function keys<const Keys extends readonly string[]>(list: Keys): Partitions<Keys[number], undefined, 'keys'> {
  const wrong = !Array.isArray(list) || list.length === 0 || list.some((key) => typeof key !== 'string' || key === '')
  if (wrong || new Set(list).size !== list.length)
    throw invalid('bad_keys', `keys(${show(list)}) needs an array of unique, non-empty strings`, "Write keys(['eu', 'us']).")
  for (const key of list) {
    const { error } = newKey.safeParse(key)
    if (error !== undefined)
      throw invalid(
        'bad_keys',
        `keys() cannot contain ${show(key).slice(0, 60)}: it ${issuesText(error.issues)}`,
        'Choose another key.',
      )
  }
  return { data: { type: 'keys', keys: [...list] }, key: keySchema(z.enum(list)) }
}

/** Keys that are added and removed while the project runs. `name` identifies the set. */
export function dynamic(name: string): DynamicPartitions {
  if (typeof name !== 'string' || name === '')
    throw invalid('bad_name', `dynamic(${show(name)}) needs a name`, "Write dynamic('customers').")
  return { data: { type: 'dynamic', name }, key: keySchema(z.string().min(1)) }
}

type Dimensions = Readonly<Record<string, AnyPartitions>>

/** Every combination of the keys of several dimensions. */
export function multi<Of extends Dimensions>(
  dimensions: Of,
): Partitions<
  { [Name in keyof Of]: KeyOf<Of[Name]> },
  { [Name in keyof Of]: SpanOf<Of[Name]> },
  { [Name in keyof Of]: KindOf<Of[Name]> }
> {
  const entries = Object.entries(dimensions ?? {})
  if (entries.length < 2)
    throw invalid(
      'bad_dimensions',
      `multi() needs at least two dimensions, not ${entries.length}`,
      'Write multi({ day, region }).',
    )
  for (const [name, of] of entries) {
    if (isPartitions(of) && of.data.type !== 'multi' && !('ranges' in of)) continue
    throw invalid(
      'bad_dimensions',
      `${name} is not a dimension`,
      'Use daily(), hourly(), monthly() and so on, keys() or dynamic(). Put ranges() around multi().',
    )
  }
  return {
    data: {
      type: 'multi',
      dimensions: Object.fromEntries(entries.map(([name, dimension]) => [name, dimension.data as DimensionDefinition])),
    },
    key: keySchema(z.strictObject(Object.fromEntries(entries.map(([name, dimension]) => [name, dimension.key])))),
  }
}

export function isPartitions(value: unknown): value is AnyPartitions {
  return typeof value === 'object' && value !== null && 'data' in value && 'key' in value
}

const examples: Record<TimeUnit, string> = {
  minutely: '2025-01-15T09:30',
  hourly: '2025-01-15T09',
  daily: '2025-01-15',
  weekly: '2025-01-13',
  monthly: '2025-01',
  quarterly: '2025-04',
  yearly: '2025',
  cron: '2025-01-15T06:00',
}

const places = ['every', 'minute', 'hour', 'weekday', 'day', 'month', 'cron'] as const

const timeOptions = ['start', 'end', 'timezone', 'endOffset', 'format', 'exclusions', ...places]

function timePartitions<Key>(type: TimeUnit, options: TimeOptions<string> & UnitOptions): Time<Key, never> {
  const { start, end, timezone = 'UTC', endOffset, format, exclusions } = options ?? {}
  const name = type === 'cron' ? 'cronWindows' : type
  const example = examples[type]
  checkOptionNames(`${name}()`, options ?? {}, timeOptions)
  for (const [which, key] of Object.entries({ start, end })) {
    if ((typeof key === 'string' && key !== '') || (which === 'end' && key === undefined)) continue
    throw invalid('bad_window', `\`${which}\` of ${name}() cannot be ${show(key)}`, `Write ${which}: '${example}'.`)
  }
  checkZoneName(timezone)
  const told = { end, end_offset: endOffset, format, exclusions, ...Object.fromEntries(places.map((at) => [at, options[at]])) }
  const known = Object.entries(told).filter(([, value]) => value !== undefined)
  const data = { type, start, timezone, ...Object.fromEntries(known) } as TimePartitions
  const windows = windowsOf(data, name)
  refuseInexact(windows, { start, end }, name, format === undefined ? example : undefined)
  const first = windows.at(0).key
  const wrong = ({ input }: { readonly input: unknown }): string => wrongKey(String(input), first, { format, example })
  return { data, key: keySchema(z.string().refine((key) => windows.positionOf(key) !== undefined, { error: wrong })) }
}

/** Why a text is not the key of a window. */
function wrongKey(
  key: string,
  first: string,
  { format, example }: { readonly format: string | undefined; readonly example: string },
): string {
  if (format !== undefined) return `must match ${format} and name a window from ${first} on`
  const isWritten = new RegExp(`^${example.replaceAll(/\d/g, '\\d')}$`).test(key)
  if (!isWritten) return `must look like ${example}`
  if (!isDate(key)) return `${key} is not a date`
  return key < first ? `${key} is before the first window, ${first}` : `no window has the key ${key}`
}

/** True if the calendar has the moment that a key of the usual form names: `2025-02-30` is none. */
function isDate(key: string): boolean {
  const whole = `${key}${'0000-01-01T00:00'.slice(key.length)}`
  const at = new Date(`${whole}:00Z`)
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(whole)
}

/** Counting the windows finds the mistakes that the shape of a definition does not show. */
function windowsOf(data: TimePartitions, name: string): TimeWindows {
  try {
    return timeWindows(timeDefinition(data))
  } catch (error) {
    if (!isServoError(error)) throw error
    throw invalid(error.code, `${name}(): ${error.message}`, error.hint ?? '')
  }
}

/** A start that is not a key would silently begin at another window. */
function refuseInexact(windows: TimeWindows, keys: object, name: string, example: string | undefined): void {
  for (const [which, key] of Object.entries(keys)) {
    if (key === undefined || windows.positionOf(key) !== undefined || (which === 'end' && isAfterLast(windows, key))) continue
    const hint = `The next window is ${windows.at(0).key}${example === undefined ? '' : `; keys look like ${example}`}.`
    throw invalid('bad_window', `\`${which}\` of ${name}() is ${show(key)}, but no window has that key`, hint)
  }
}

/** Later than any author stops, and before the last window that is counted. */
const FAR_AWAY_MS = Date.UTC(2190, 0)

/** The key of the window at which the definition stops is not one of its keys. */
function isAfterLast(windows: TimeWindows, key: string): boolean {
  return windows.at(windows.count(FAR_AWAY_MS)).key === key
}

/** The types of the keys are narrower than a schema can express. */
const keySchema = <Key>(schema: z.ZodType): z.ZodType<Key, Key> => schema as z.ZodType<Key, Key>
