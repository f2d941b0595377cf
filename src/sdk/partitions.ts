import { z } from 'zod'
import { DAY_MS } from '../lib/time.ts'
import { invalid, show } from './invalid.ts'
import { isZone } from './zone.ts'

export type DayKey = `${number}-${number}-${number}`
export type HourKey = `${DayKey}T${number}`
export type MonthKey = `${number}-${number}`

/** The time a partition stands for: from `start` up to, and without, `end`. */
export interface Window {
  readonly start: Date
  readonly end: Date
}

/** Partitions as they are recorded. */
export type PartitionData =
  | { readonly type: TimeUnit; readonly start: string; readonly end?: string; readonly timezone: string }
  | { readonly type: 'keys'; readonly keys: readonly string[] }
  | { readonly type: 'dynamic'; readonly name: string }
  | { readonly type: 'multi'; readonly dimensions: Readonly<Record<string, PartitionData>> }

export type TimeUnit = 'hourly' | 'daily' | 'weekly' | 'monthly'

/** Only in types: what a value stands for. */
declare const carries: unique symbol

/** Which parts an asset is made in. `Key` is what one is called, `Span` its window of time, if it has one. */
export interface Partitions<Key, Span = undefined> {
  readonly data: PartitionData
  /** A schema of the key, to be used inside other schemas: `z.object({ day: day.key })`. */
  readonly key: z.ZodType<Key, Key>
  readonly [carries]?: { readonly key: Key; readonly span: Span }
}

export type AnyPartitions = Partitions<unknown, unknown>
export type KeyOf<P> = P extends { readonly [carries]?: { readonly key: infer Key } } ? Key : never
export type SpanOf<P> = P extends { readonly [carries]?: { readonly span: infer Span } } ? Span : never

export interface TimeOptions<Start> {
  /** The first window, by its key. */
  start: Start
  /** The window before which to stop. */
  end?: Start
  /** IANA name of the zone in which windows begin and end; UTC unless told. */
  timezone?: string
}

export function daily(options: TimeOptions<DayKey>): Partitions<DayKey, Window> {
  return timePartitions('daily', options)
}

/** Keys such as `2025-01-15T09`. The hour that clocks repeat in autumn is one window of two hours. */
export function hourly(options: TimeOptions<HourKey>): Partitions<HourKey, Window> {
  return timePartitions('hourly', options)
}

/** Each week is called by its first day; weeks begin on the weekday of `start`. */
export function weekly(options: TimeOptions<DayKey>): Partitions<DayKey, Window> {
  return timePartitions('weekly', options)
}

/** Keys such as `2025-01`. */
export function monthly(options: TimeOptions<MonthKey>): Partitions<MonthKey, Window> {
  return timePartitions('monthly', options)
}

export function keys<const Keys extends readonly string[]>(list: Keys): Partitions<Keys[number]> {
  const wrong = !Array.isArray(list) || list.length === 0 || list.some((key) => typeof key !== 'string' || key === '')
  if (wrong || new Set(list).size !== list.length)
    throw invalid('bad_keys', `keys(${show(list)}) needs a list of texts, each once`, "Write keys(['eu', 'us']).")
  return { data: { type: 'keys', keys: [...list] }, key: keySchema(z.enum(list)) }
}

/** Keys that come and go while the project runs; `name` tells this set from others. */
export function dynamic(name: string): Partitions<string> {
  if (typeof name !== 'string' || name === '')
    throw invalid('bad_name', `dynamic(${show(name)}) needs a name`, "Write dynamic('customers').")
  return { data: { type: 'dynamic', name }, key: keySchema(z.string().min(1)) }
}

type Dimensions = Readonly<Record<string, AnyPartitions>>

/** Every combination of the keys of several dimensions. */
export function multi<Of extends Dimensions>(
  dimensions: Of,
): Partitions<{ [Name in keyof Of]: KeyOf<Of[Name]> }, { [Name in keyof Of]: SpanOf<Of[Name]> }> {
  const entries = Object.entries(dimensions ?? {})
  if (entries.length < 2)
    throw invalid(
      'bad_dimensions',
      `multi() got ${entries.length} dimension(s)`,
      'Write multi({ day, region }) with two or more.',
    )
  for (const [name, of] of entries) {
    if (isPartitions(of) && of.data.type !== 'multi') continue
    throw invalid(
      'bad_dimensions',
      `${name} is no dimension`,
      'Use daily(), hourly(), weekly(), monthly(), keys() or dynamic().',
    )
  }
  return {
    data: { type: 'multi', dimensions: Object.fromEntries(entries.map(([name, of]) => [name, of.data])) },
    key: keySchema(z.strictObject(Object.fromEntries(entries.map(([name, of]) => [name, of.key])))),
  }
}

export function isPartitions(value: unknown): value is AnyPartitions {
  return typeof value === 'object' && value !== null && 'data' in value && 'key' in value
}

const spelling: Record<TimeUnit, { pattern: RegExp; example: string }> = {
  hourly: { pattern: /^\d{4}-\d{2}-\d{2}T\d{2}$/, example: '2025-01-15T09' },
  daily: { pattern: /^\d{4}-\d{2}-\d{2}$/, example: '2025-01-15' },
  weekly: { pattern: /^\d{4}-\d{2}-\d{2}$/, example: '2025-01-13' },
  monthly: { pattern: /^\d{4}-\d{2}$/, example: '2025-01' },
}

function timePartitions<Key extends string>(type: TimeUnit, options: TimeOptions<Key>): Partitions<Key, Window> {
  const { start, end, timezone = 'UTC' } = options ?? {}
  const { example } = spelling[type]
  for (const [name, key] of Object.entries({ start, end })) {
    if (isTimeKey(type, key) || (name === 'end' && key === undefined)) continue
    throw invalid('bad_window', `${name} of ${type}() is ${show(key)}`, `Write ${type}({ ${name}: '${example}' }).`)
  }
  if (!isZone(timezone))
    throw invalid('bad_timezone', `${show(timezone)} is no time zone`, "Write an IANA name such as 'Europe/Paris', or 'UTC'.")
  const data = { type, start, ...(end === undefined ? {} : { end }), timezone }
  const firstDay = type === 'weekly' ? Date.parse(start) : undefined
  return {
    data,
    key: keySchema(
      z
        .string()
        .refine(
          (key) => isTimeKey(type, key) && (firstDay === undefined || (Date.parse(key) - firstDay) % (7 * DAY_MS) === 0),
          firstDay === undefined
            ? `must be written as ${example}`
            : `must be the first day of a week that begins like ${start}`,
        ),
    ),
  }
}

/** Written as the unit wants it, and on the calendar: 2025-02-30 is not. */
function isTimeKey(type: TimeUnit, key: unknown): boolean {
  if (typeof key !== 'string' || !spelling[type].pattern.test(key)) return false
  const full = `${key}${'2025-01-01T00:00:00.000Z'.slice(key.length)}`
  const ms = Date.parse(full)
  return !Number.isNaN(ms) && new Date(ms).toISOString() === full
}

/** The types of the keys are narrower than what a schema can say of them. */
const keySchema = <Key>(schema: z.ZodType): z.ZodType<Key, Key> => schema as z.ZodType<Key, Key>
