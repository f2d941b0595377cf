import { Cadence } from '../../cron/cadence.ts'
import { type ClockChange, changeInWords, clockChanges, clockNote, effectInWords } from '../../cron/clock-changes.ts'
import { cronInWords } from '../../cron/cron-in-words.ts'
import { weekdayName } from '../../cron/days-in-words.ts'
import { howOften, howOftenInWords } from '../../cron/how-often.ts'
import { type Cron, parseCron } from '../../cron/parse-cron.ts'
import { clockTrap, trapsOf } from '../../cron/traps.ts'
import { type Zone, zoneNamed } from '../../cron/zone-clocks.ts'
import { weekdayOf } from '../../lib/calendar.ts'
import { ServoError } from '../../lib/error.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, toIso } from '../../lib/time.ts'
import { alignRows, type Cell } from '../columns.ts'
import { wholeNumber } from '../flags.ts'
import { colours, print, printJson } from '../output.ts'

export interface CronFlags {
  timezone?: string
  json?: boolean
}

export interface NextFlags extends CronFlags {
  from?: string
  count: string
}

const MOST_TICKS = 1_000

/** Prints the next ticks of expressions, each instant once. */
export function nextTicks(expressions: readonly string[], flags: NextFlags, now: Date): void {
  const count = wholeNumber('--count', flags.count, { min: 1, max: MOST_TICKS })
  const timezone = flags.timezone ?? 'UTC'
  const zone = zoneNamed(timezone)
  const crons = parsedAll(expressions)
  const from = flags.from === undefined ? now.getTime() : fromFlag(flags.from, zone)
  const cadence = new Cadence({ cron_expressions: expressions, timezone, start_at: null, end_at: null })
  const ticks: number[] = []
  for (let tick = cadence.after(from); tick !== undefined && ticks.length < count; tick = cadence.after(tick)) ticks.push(tick)

  if (flags.json) printJson(ticks.map((tick) => ({ scheduled_for: toIso(tick), ...localTimeOf(tick, zone) })))
  else printTicks(ticks, crons, zone, { from, count })
}

function printTicks(
  ticks: readonly number[],
  crons: readonly Cron[],
  zone: Zone,
  { from, count }: { from: number; count: number },
): void {
  const withSeconds = crons.some(({ seconds }) => seconds.some((second) => second !== 0))
  const lines = ticks.map((tick, index) => {
    const note = clockNote(crons, zone, tick, ticks[index - 1] ?? from)
    return tickLine(tick, zone, { withSeconds, fromMs: from, note })
  })
  if (lines.length > 0) print(alignRows(lines).join('\n'))
  if (ticks.length < count) print(colours.dim(`no ${ticks.length === 0 ? '' : 'more '}ticks before the year 2200`))
}

/** An expression that lost its quotes comes as a word per field, or with the names of files for its stars. */
function parsedAll(expressions: readonly string[]): Cron[] {
  if (expressions.length < 5 || expressions.some((text) => /\s|^@/.test(text.trim()))) return expressions.map(parseCron)
  throw new ServoError(
    'invalid',
    'bad_cron',
    `${expressions.length} arguments were read as ${expressions.length} cron expressions`,
    {
      hint: 'Put the expression in quotes, such as "0 6 * * MON-FRI".',
    },
  )
}

/** What zones did is checked against Intl from 1970 on; after 2199 no ticks are counted. */
const [FIRST_FROM_MS, LAST_FROM_MS] = [Date.UTC(1970, 0), Date.UTC(2200, 0)]

const LOCAL_MOMENT = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)?$/
const MOMENT_OF_ZONE = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/

/** A moment. Other flags take one without a zone as local to this machine; here it is what clocks of the zone show, as ticks are. */
function fromFlag(text: string, zone: Zone): number {
  const isLocal = LOCAL_MOMENT.test(text)
  const ms = Date.parse(isLocal && text.includes('T') ? `${text}Z` : text)
  const isMoment = (isLocal || MOMENT_OF_ZONE.test(text)) && !Number.isNaN(ms) && isDate(text.slice(0, 10))
  if (!isMoment) throw badFrom(text, 'is not a time')
  if (ms < FIRST_FROM_MS || ms >= LAST_FROM_MS) throw badFrom(text, 'is not between the years 1970 and 2199')
  return isLocal ? zone.instantOf(ms) : ms
}

/** There is no 30 February; Date goes on to March. */
const isDate = (day: string): boolean => toIso(Date.parse(day)).slice(0, 10) === day

const badFrom = (text: string, why: string): ServoError =>
  new ServoError('invalid', 'bad_flag', `--from '${text}' ${why}`, {
    hint: 'Write 2025-01-15T10:00:00Z, or 2025-01-15T10:00 for a time in --timezone.',
  })

interface LineDetails {
  readonly withSeconds: boolean
  readonly fromMs: number
  readonly note: string | undefined
}

function tickLine(tickMs: number, zone: Zone, { withSeconds, fromMs, note }: LineDetails): Cell[] {
  const { local, offset } = localTimeOf(tickMs, zone)
  const [date = '', time = ''] = local.split('T')
  const weekday = weekdayName(weekdayOf(Math.floor(zone.wallAt(tickMs) / DAY_MS))).slice(0, 3)
  return [
    { text: `${weekday} ${date} ${withSeconds || !time.endsWith(':00') ? time : time.slice(0, 5)} ${offset}` },
    { text: `in ${distance(tickMs - fromMs)}`, paint: colours.dim },
    { text: note ?? '', paint: colours.yellow },
  ]
}

/** What clocks show at an instant, and how far they are ahead of UTC. */
function localTimeOf(ms: number, zone: Zone): { local: string; offset: string } {
  const wallMs = zone.wallAt(ms)
  return { local: new Date(wallMs).toISOString().slice(0, 19), offset: offsetText(wallMs - ms) }
}

function offsetText(offsetMs: number): string {
  const text = new Date(Math.abs(offsetMs)).toISOString().slice(11, 19)
  return `${offsetMs < 0 ? '-' : '+'}${text.endsWith(':00') ? text.slice(0, 5) : text}`
}

/** The two largest units of a distance: `3 d 4 h`, `12 min`. */
function distance(ms: number): string {
  const whole = Math.ceil(ms / SECOND_MS) * SECOND_MS
  const units = [
    ['d', DAY_MS],
    ['h', HOUR_MS],
    ['min', MINUTE_MS],
    ['s', SECOND_MS],
  ] as const
  const first = units.findIndex(([, unitMs]) => whole >= unitMs)
  let left = whole
  const parts = units.slice(first, first + 2).flatMap(([name, unitMs]) => {
    const number = Math.floor(left / unitMs)
    left -= number * unitMs
    return number === 0 ? [] : [`${number.toLocaleString('en')} ${name}`]
  })
  return parts.join(' ')
}

/** Longer than a year, so that the next change forward and the next change back are both in it. */
const CHANGES_AHEAD_MS = 400 * DAY_MS

/** Says an expression in words, how often it ticks, and what it does when clocks are changed. */
export function explainCron(expressions: readonly string[], flags: CronFlags, now: Date): void {
  const [cron, ...others] = parsedAll(expressions)
  if (cron === undefined || others.length > 0)
    throw new ServoError('invalid', 'bad_flag', `explain takes one expression, not ${expressions.length}`, {
      hint: 'Put the expression in quotes, such as "0 6 * * MON-FRI".',
    })
  const zone = zoneNamed(flags.timezone ?? 'UTC')
  const nowMs = now.getTime()
  const changes = clockChanges(zone, nowMs, nowMs + CHANGES_AHEAD_MS).slice(0, 2)
  const notes = [...trapsOf(cron), ...(flags.timezone === undefined ? [clockTrap(cron) ?? []].flat() : [])]
  if (flags.json) {
    const { perDay, perWeek, perYear } = howOften(cron)
    printJson({
      cron: cron.text,
      words: cronInWords(cron),
      notes,
      ticks_per_day: perDay,
      ticks_per_week: perWeek ?? null,
      ticks_per_year: perYear,
      timezone: zone.name,
      follows: cron.everyHour ? 'time' : 'clock',
      clock_changes: changes.map((change) => ({
        at: toIso(change.atMs),
        words: changeInWords(change),
        effect: effectInWords(change, cron) ?? null,
      })),
    })
    return
  }
  const lines = [howOftenInWords(howOften(cron)), ...notes]
  if (flags.timezone !== undefined) lines.push(...changesInWords(changes, cron, zone))
  print([colours.bold(cronInWords(cron)), ...lines.map((text) => `  ${text}`)].join('\n'))
}

function changesInWords(changes: readonly ClockChange[], cron: Cron, zone: Zone): string[] {
  if (changes.length === 0) return [`clocks in ${zone.name} do not change`]
  const each = changes.map((change) => {
    const date = toIso(change.atMs + change.beforeMs).slice(0, 10)
    return `${date}  ${changeInWords(change)}; ${effectInWords(change, cron) ?? 'no tick is affected'}`
  })
  return [cron.everyHour ? FOLLOWS_TIME : FOLLOWS_CLOCK, ...each]
}

const FOLLOWS_TIME =
  'it runs every hour, so it follows elapsed time: hours that clocks skip have no tick, hours that clocks repeat have two'
const FOLLOWS_CLOCK =
  'it follows the clock: a time that clocks skip runs right after the change, a time that clocks repeat runs once, the second time'
