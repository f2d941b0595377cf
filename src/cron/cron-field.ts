import { ServoError } from '../lib/error.ts'

/** Describes one field of a cron expression. */
export interface Field {
  readonly name: string
  readonly min: number
  readonly max: number
  /** The number of different values: Sunday is both 0 and 7, and still one day. */
  readonly size: number
  /** Names that stand for the values from `min` on. */
  readonly names: readonly string[]
  readonly example: string
}

const field = (name: string, min: number, max: number, example: string, names: readonly string[] = []): Field => ({
  ...{ name, min, max, example, names },
  size: name === 'weekday' ? 7 : max - min + 1,
})

const monthNames = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const weekdayNames = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

/** In the order in which they are written; an expression of five fields has no seconds. */
export const fields = {
  second: field('second', 0, 59, '0, 0,30 or */10'),
  minute: field('minute', 0, 59, '0, 0,30, 10-20 or */15'),
  hour: field('hour', 0, 23, '*, 6, 9-17, 22-4 or */2'),
  day: field('day of month', 1, 31, '*, 1, 1,15, 10-20, */10, L for the last one or 15-L'),
  month: field('month', 1, 12, '*, 1, JAN, 1-6 or */3', monthNames),
  weekday: field(
    'weekday',
    0,
    7,
    '*, 0 or 7 or SUN for Sunday, MON-FRI, 1#2 for the second Monday, or L5 for the last Friday',
    weekdayNames,
  ),
} as const

/** The values of one item of a list, such as `*`, `5`, `MON-FRI`, `22-4` or `10-50/5`. */
export function valuesOf(item: string, field: Field, text: string): number[] {
  const [range = '', step, ...rest] = item.split('/')
  if (rest.length > 0) throw badField(field, item, text)
  const every = step === undefined ? 1 : digits(step)
  if (every === undefined || every < 1) throw badField(field, item, text, 'the step after / must be a number of at least 1')
  const [from, to] = boundsOf(range, step !== undefined, field, text)
  const values: number[] = []
  for (let value = from; value <= to; value += every) values.push(field.min + ((value - field.min) % field.size))
  return values
}

/** First and last value. A range that ends before it begins goes on past the largest value: 22-4 is 22, 23, 0 … 4. */
function boundsOf(range: string, stepped: boolean, field: Field, text: string): [number, number] {
  const largest = field.min + field.size - 1
  if (range === '*') return [field.min, largest]
  const [low = '', high, ...rest] = range.split('-')
  if (rest.length > 0) throw badField(field, range, text)
  const from = oneValue(low, field, text)
  // Sunday as 7 is the first weekday, and the others follow: 7/2 is 0/2.
  if (high === undefined) return stepped ? [from > largest ? field.min : from, largest] : [from, from]
  const to = field === fields.day && high.toUpperCase() === 'L' ? largest : oneValue(high, field, text)
  return [from, to < from ? to + field.size : to]
}

export function oneValue(word: string, field: Field, text: string): number {
  const named = field.names.indexOf(word.toUpperCase())
  if (named >= 0) return field.min + named
  const value = digits(word)
  if (value === undefined) throw badField(field, word, text)
  if (value < field.min || value > field.max) throw outOfRange(field, value, text)
  return value
}

export const digits = (word: string): number | undefined => (/^\d+$/.test(word) ? Number(word) : undefined)

export function badField(field: Field, found: string, text: string, why?: string): ServoError {
  const reason = why === undefined ? '' : `: ${why}`
  return badCron(text, `${quoteWord(found)} cannot be the ${field.name}${reason}`, `As ${field.name} write ${field.example}.`, {
    field: field.name,
  })
}

function outOfRange(field: Field, value: number, text: string): ServoError {
  const why = `${field.name} ${value} is out of range (${field.min}–${field.max})`
  return badCron(text, why, `As ${field.name} write ${field.example}.`, { field: field.name })
}

export function badCron(text: string, why: string, hint: string, facts: Record<string, unknown> = {}): ServoError {
  return new ServoError('invalid', 'bad_cron', `invalid cron expression ${quoteWord(text)}: ${why}`, {
    hint,
    facts: { ...facts, cron: text.slice(0, 200) },
  })
}

const quoteWord = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
