import { type CalendarDate, dateOf, dayNumber, firstDayOf, isoWeek, isoWeekStart, weekdayOf } from '../../lib/calendar.ts'
import { itemAt } from '../../lib/collections/item-at.ts'
import { ServoError } from '../../lib/error.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../lib/time.ts'

/** What two moments must share to be written alike. */
export type Resolution = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year'

/** A moment as clocks show it, and how far they are ahead of UTC if that is known. */
export interface Shown {
  readonly wallMs: number
  readonly offsetMs: number | undefined
}

const months = ['January', 'February', 'March', 'April', 'May', 'June']
months.push('July', 'August', 'September', 'October', 'November', 'December')
const weekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const short = (names: readonly string[]) => names.map((name) => name.slice(0, 3))
/** A key of a minute has five numbers, and a selection may read a million keys. */
const twoDigits = Array.from({ length: 100 }, (_, value) => String(value).padStart(2, '0'))
const pad = (value: number, width = 2) => (width === 2 ? twoDigits[value] : undefined) ?? String(value).padStart(width, '0')

interface Directive {
  readonly pattern: string
  write(wallMs: number, offsetMs: number): string
}

const number = (digits: number, fieldOf: (wallMs: number) => number): Directive => ({
  pattern: `\\d{${digits}}`,
  write: (wallMs) => pad(fieldOf(wallMs), digits),
})
const name = (names: readonly string[], fieldOf: (wallMs: number) => number): Directive => ({
  pattern: names.join('|'),
  write: (wallMs) => itemAt(names, fieldOf(wallMs)),
})
const day = (wallMs: number) => Math.floor(wallMs / DAY_MS)
/** The fields of a key are of one day, and so are those of most keys in a row. */
let latest = { day: 0, date: dateOf(0) }
function date(wallMs: number): CalendarDate {
  const number = day(wallMs)
  if (latest.day !== number) latest = { day: number, date: dateOf(number) }
  return latest.date
}
const month = (wallMs: number) => date(wallMs).month
const weekday = (wallMs: number) => weekdayOf(day(wallMs))

const directives: Readonly<Record<string, Directive>> = {
  Y: number(4, (ms) => date(ms).year),
  m: number(2, month),
  d: number(2, (ms) => date(ms).day),
  H: number(2, (ms) => Math.floor(ms / HOUR_MS) - 24 * day(ms)),
  M: number(2, (ms) => Math.floor(ms / MINUTE_MS) - 60 * Math.floor(ms / HOUR_MS)),
  S: number(2, (ms) => Math.floor(ms / SECOND_MS) - 60 * Math.floor(ms / MINUTE_MS)),
  j: number(3, (ms) => day(ms) - firstDayOf(dateOf(day(ms)).year) + 1),
  G: number(4, (ms) => isoWeek(day(ms)).year),
  V: number(2, (ms) => isoWeek(day(ms)).week),
  u: number(1, (ms) => weekday(ms) || 7),
  b: name(short(months), (ms) => month(ms) - 1),
  B: name(months, (ms) => month(ms) - 1),
  a: name(short(weekdays), weekday),
  A: name(weekdays, weekday),
  z: { pattern: '[+-]\\d{4}(?:\\d{2})?', write: (_, offsetMs) => writeOffset(offsetMs) },
}

/** Literal text that may be in a key. Other characters end names of dimensions, folders or lines. */
const safe = /^[A-Za-z0-9 _.:+%/-]*$/

/** The format of keys of time windows: a subset of strftime in which every key means one time. */
export class TimeFormat {
  readonly text: string
  readonly resolution: Resolution
  readonly writesOffset: boolean
  private readonly parts: readonly (string | Directive)[]
  private readonly pattern: RegExp
  private readonly groups: readonly string[]

  constructor(text: string) {
    this.text = text
    const tokens = tokensOf(text)
    const isLiteral = (token: string) => token === '%%' || !token.startsWith('%')
    const letters = tokens.filter((token) => !isLiteral(token)).map((token) => token.charAt(1))
    this.parts = tokens.map((token) => (isLiteral(token) ? token.charAt(0) : directive(token, text)))
    const plain = this.parts.filter((part) => typeof part === 'string').join('')
    if (!safe.test(plain) || text !== text.trim()) {
      throw badFormat(
        text,
        'its keys would contain unsafe characters',
        'Between directives use letters, digits, spaces and - _ . : + / only.',
      )
    }
    this.resolution = resolutionOf(letters, text)
    this.writesOffset = letters.includes('z')
    this.groups = [...letters, 'z']
    const escaped = this.parts.map((part) => (typeof part === 'string' ? part.replace(/[.+]/g, '\\$&') : `(${part.pattern})`))
    // The second of two windows whose keys would be alike has its offset behind it.
    this.pattern = new RegExp(`^${escaped.join('')}${this.writesOffset ? '' : '([+-]\\d{4}(?:\\d{2})?)?'}$`)
  }

  write(wallMs: number, offsetMs: number): string {
    let text = ''
    for (const part of this.parts) text += typeof part === 'string' ? part : part.write(wallMs, offsetMs)
    return text
  }

  /** The first moment that is written like this; undefined for other text and for dates that are not on the calendar. */
  read(key: string): Shown | undefined {
    const found = this.pattern.exec(key)
    if (found === null) return undefined
    const fields = new Map<string, string>()
    for (const [index, letter] of this.groups.entries()) {
      const value = found[index + 1]
      if (value !== undefined && !fields.has(letter)) fields.set(letter, value)
    }
    const offset = fields.get('z')
    const offsetMs = offset === undefined ? undefined : readOffset(offset)
    const wallMs = wallOf(fields)
    const suffix = offset === undefined || this.writesOffset ? '' : offset
    return this.write(wallMs, offsetMs ?? 0) + suffix === key ? { wallMs, offsetMs } : undefined
  }
}

function tokensOf(text: string): string[] {
  if (typeof text !== 'string' || text.length > 100)
    throw badFormat(String(text), 'it is too long', 'Write up to 100 characters.')
  const whole = text.replaceAll('%F', '%Y-%m-%d').replaceAll('%T', '%H:%M:%S').replaceAll('%R', '%H:%M')
  return whole.match(/%.?|[^%]/gs) ?? []
}

function directive(token: string, text: string): Directive {
  const known = Object.hasOwn(directives, token.charAt(1)) ? directives[token.charAt(1)] : undefined
  if (known !== undefined) return known
  const all = [...Object.keys(directives), 'F', 'T', 'R', '%'].map((letter) => `%${letter}`).join(' ')
  throw badFormat(text, `${token} is not supported`, `Use ${all}.`)
}

/** Fields are worth something only below others: a day of no month, or minutes of no hour, leave open which. */
function resolutionOf(letters: readonly string[], text: string): Resolution {
  const has = (letter: string) => letters.includes(letter)
  const hasMonth = has('m') || has('b') || has('B')
  const needs = (what: string, missing: string) =>
    badFormat(text, `${what} without ${missing} does not determine a time`, `Add ${missing}.`)
  let date: Resolution | undefined
  if (has('Y') && (has('j') || (hasMonth && has('d')))) date = 'day'
  else if (has('G') && has('V')) date = has('u') ? 'day' : 'week'
  else if (has('Y')) date = hasMonth ? 'month' : 'year'
  if (date === undefined) throw has('V') ? needs('%V', '%G') : has('G') ? needs('%G', '%V') : needs('a key', '%Y')
  if (has('d') && date !== 'day') throw needs('%d', '%m')
  if (has('V') && !has('G') && date !== 'day') throw needs('%V', '%G')
  if (has('H') && date !== 'day') throw needs('%H', '%Y-%m-%d')
  if (has('M') && !has('H')) throw needs('%M', '%H')
  if (has('S') && !has('M')) throw needs('%S', '%M')
  return has('S') ? 'second' : has('M') ? 'minute' : has('H') ? 'hour' : date
}

function wallOf(fields: ReadonlyMap<string, string>): number {
  const value = (letter: string, otherwise: number) => Number(fields.get(letter) ?? otherwise)
  const time = value('H', 0) * HOUR_MS + value('M', 0) * MINUTE_MS + value('S', 0) * SECOND_MS
  return dayOf(fields, value) * DAY_MS + time
}

function dayOf(fields: ReadonlyMap<string, string>, value: (letter: string, otherwise: number) => number): number {
  if (fields.has('Y') && fields.has('j')) return firstDayOf(value('Y', 0)) + value('j', 1) - 1
  const named = short(months).indexOf((fields.get('b') ?? fields.get('B') ?? '').slice(0, 3)) + 1
  const month = value('m', named || 1)
  const byWeek = fields.has('G') && fields.has('V') && !(fields.has('Y') && fields.has('d'))
  if (byWeek) return isoWeekStart(value('G', 0), value('V', 1)) + value('u', 1) - 1
  return dayNumber(value('Y', 0), month, value('d', 1))
}

export function writeOffset(offsetMs: number): string {
  const total = Math.abs(offsetMs) / SECOND_MS
  const seconds = total % 60
  return `${offsetMs < 0 ? '-' : '+'}${pad(Math.floor(total / 3600))}${pad(Math.floor(total / 60) % 60)}${seconds ? pad(seconds) : ''}`
}

function readOffset(text: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = (text.slice(1).match(/\d\d/g) ?? []).map(Number)
  return (text.startsWith('-') ? -1 : 1) * ((hours * 60 + minutes) * 60 + seconds) * SECOND_MS
}

function badFormat(text: string, why: string, hint: string): ServoError {
  const shown = JSON.stringify(text.slice(0, 60))
  return new ServoError('invalid', 'bad_key_format', `the key format ${shown} cannot be used: ${why}`, {
    hint,
    facts: { format: text },
  })
}
