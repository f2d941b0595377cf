import { type Field, fields, valuesOf } from './cron-field.ts'
import { passedOver } from './days-in-words.ts'
import { lengthsOf, type NamedDays, namedDays } from './named-days.ts'
import type { Cron } from './parse-cron.ts'
import { inSeries, ordinal } from './word-lists.ts'

/** What an author may not have meant, where an expression does something else than it seems to say. */
export function trapsOf(cron: Cron): string[] {
  const words = cron.text.startsWith('@') ? [] : cron.text.split(/\s+/)
  const written = words.length === 5 ? ['0', ...words] : words
  const named = namedDays(cron)
  const steps = FIELDS.flatMap((field, index) => stepTraps(written[index] ?? '', field, cron.text))
  return [
    ...(words.length === 6 ? ['with six fields the first is the second, not the minute'] : []),
    ...steps,
    ...everyMinute(cron),
    ...eitherDay(named),
    ...shortMonths(named, written[3] ?? ''),
  ]
}

/** Of times that many zones jump over once a year and show twice, where no zone was asked about. */
export function clockTrap({ hours, everyHour }: Cron): string | undefined {
  const isNear = !everyHour && hours.some((hour) => hour === 1 || hour === 2)
  return isNear
    ? 'many zones jump over times from 01:00 to 03:00 once a year and show them twice once: --timezone says what happens then'
    : undefined
}

const FIELDS = [fields.second, fields.minute, fields.hour, fields.day, fields.month, fields.weekday]

/** What a field counts, what it begins anew with, and one value of it in words. */
const COUNTED: Readonly<Record<string, { unit: string; anew: string; value: (value: number) => string }>> = {
  second: { unit: 'seconds', anew: 'minute', value: (value) => `second ${value}` },
  minute: { unit: 'minutes', anew: 'hour', value: (value) => `minute ${value}` },
  hour: { unit: 'hours', anew: 'day', value: (value) => `${String(value).padStart(2, '0')}:00` },
  'day of month': { unit: 'days', anew: 'month', value: (value) => `the ${ordinal(value)}` },
  month: { unit: 'months', anew: 'year', value: (value) => `month ${value}` },
  weekday: { unit: 'days', anew: 'week', value: (value) => `weekday ${value}` },
}

/** A step counts within its field alone, which begins anew. Ranges end where their author says, so only open ones are looked at. */
function stepTraps(word: string, field: Field, text: string): string[] {
  const counted = COUNTED[field.name]
  const items = word.split(',')
  if (counted === undefined || items.length > 1) return []
  return items.flatMap((item) => {
    const [range = '', step] = item.split('/')
    if (step === undefined || range.includes('-')) return []
    const every = Number(step)
    const values = valuesOf(item, field, text)
    const [first = field.min, last = first] = [values[0], values.at(-1)]
    if (values.length === 1)
      return every < field.size - (first - field.min)
        ? []
        : [`${item} is ${counted.value(first)} alone: ${counted.unit} end at ${field.min + field.size - 1}`]
    const gap = field.size - last + first
    if (gap === every) return []
    // Months differ in length, so the gap between them does too.
    const how =
      field === fields.day
        ? ''
        : `: from ${counted.value(last)} to ${counted.value(first)} it is ${gap} ${gap === 1 ? counted.unit.slice(0, -1) : counted.unit}`
    return [`${item} begins anew each ${counted.anew}${how}`]
  })
}

const everyMinute = ({ minutes, everyHour }: Cron): string[] =>
  minutes.length === fields.minute.size && !everyHour
    ? ['it ticks each minute of these hours: for once an hour, write 0 as the minute']
    : []

const eitherDay = ({ days, weekdays }: NamedDays): string[] =>
  days !== undefined && weekdays !== undefined
    ? ['a day counts if either day field names it: for days that match both, check the other one in code (when)']
    : []

function shortMonths(named: NamedDays, word: string): string[] {
  const whole = passedOver(named)
  if (whole !== undefined) return [whole]
  const { days, weekdays, months } = named
  if (days === undefined || weekdays !== undefined || days.last || word.includes('/') || word.includes('-')) return []
  const shortest = Math.min(...months.flatMap(lengthsOf))
  const rare = days.numbers.filter((day) => day > shortest)
  return rare.length === 0 ? [] : [`months without a ${inSeries(rare.map((day) => ordinal(day)))} have no tick then`]
}
