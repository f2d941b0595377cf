import { zoneNamed } from '../../cron/zone-clocks.ts'
import { ServoError } from '../../lib/error.ts'
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../lib/time.ts'

const TIME = /^(\d{1,2}):(\d\d)(?::(\d\d))?$/
const LOCAL = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)?$/
const ABSOLUTE = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/

/** A span of time that a user names: a minute if they gave no seconds. */
export interface AskedMoment {
  readonly from: number
  readonly to: number
}

/** The moment that a text means. A time without a date is its latest occurrence; without an offset, it is what clocks of the zone show. */
export function momentAsked(text: string, timezone: string, now: number): AskedMoment {
  const zone = zoneNamed(timezone)
  const time = TIME.exec(text)
  if (time !== null) {
    const [hours, minutes, seconds] = [Number(time[1]), Number(time[2]), Number(time[3] ?? 0)]
    if (hours > 23 || minutes > 59 || seconds > 59) throw badMoment(text)
    const today = Math.floor(zone.wallAt(now) / DAY_MS) * DAY_MS
    const clock = (hours * 60 + minutes) * MINUTE_MS + seconds * SECOND_MS
    const from = [today, today - DAY_MS].map((day) => zone.instantOf(day + clock)).find((at) => at <= now)
    if (from === undefined) throw badMoment(text)
    return spanOf(from, time[3] !== undefined)
  }
  const isLocal = LOCAL.test(text)
  const ms = Date.parse(isLocal ? `${text.replace(' ', 'T')}${text.length > 10 ? 'Z' : ''}` : text)
  if ((!isLocal && !ABSOLUTE.test(text)) || Number.isNaN(ms) || !isDate(text.slice(0, 10))) throw badMoment(text)
  return spanOf(isLocal ? zone.instantOf(ms) : ms, /\d\d:\d\d:\d\d/.test(text))
}

const spanOf = (from: number, hasSeconds: boolean): AskedMoment => ({ from, to: hasSeconds ? from : from + MINUTE_MS - 1 })

/** There is no 30 February; Date goes on to March. */
const isDate = (day: string): boolean => new Date(Date.parse(day)).toISOString().slice(0, 10) === day

const badMoment = (text: string): ServoError =>
  new ServoError('invalid', 'bad_moment', `${JSON.stringify(text.slice(0, 64))} is not a time`, {
    hint: 'Write 05:00 or 2025-01-15T05:00 in the time zone of the schedule, or 2025-01-15T05:00:00Z.',
    facts: { field: 'at' },
  })
