import { type Cron, parseCron } from '../../cron/parse-cron.ts'
import { Ticks, wallTimesOf } from '../../cron/ticks.ts'
import { type CountedTicks, TicksWithout } from '../../cron/ticks-without.ts'
import { FIRST_YEAR, isCounted, LAST_YEAR, WallTimes } from '../../cron/wall-times.ts'
import type { Zone } from '../../cron/zone-clocks.ts'
import { ServoError } from '../../lib/error.ts'
import { type Resolution, TimeFormat } from './format.ts'

/** Windows from one tick of a cron expression to the next, each named by its start. */
export interface TimeDefinition {
  readonly cron: string
  /** IANA name of the zone in which windows begin and end. */
  readonly timezone: string
  /** The first window begins at the first tick from here on: a key, a date and time of the zone, an instant with offset, or ms. */
  readonly start: string | number
  /** The last window ends here at the latest; given as a key, that window is the first one excluded. */
  readonly end?: string | number
  /** How many windows that have not closed exist already; negative, how many closed ones do not exist yet. */
  readonly endOffset?: number
  /** strftime, of the start of a window. */
  readonly format: string
  /**
   * Windows that do not exist: windows that begin at a tick of a cron expression, and single windows by their key or by when
   * they begin. The windows around them keep their bounds.
   */
  readonly exclusions?: readonly string[]
}

/** A definition that has passed all checks. */
export interface CheckedDefinition {
  readonly zone: Zone
  readonly format: TimeFormat
  readonly everyHour: boolean
  /** The bounds of all windows, and the starts of the windows that are not excluded. */
  readonly bounds: Ticks
  readonly starts: CountedTicks
  readonly startMs: number
  readonly endMs: number | undefined
  readonly endOffset: number
}

export function checkDefinition(definition: TimeDefinition, zone: Zone): CheckedDefinition {
  const cron = parseCron(definition.cron)
  const format = new TimeFormat(definition.format)
  refuseSharedKeys(cron, format)
  const startMs = momentOf('start', definition.start, format, zone)
  const bounds = new Ticks(zone, cron, wallTimesOf(cron), startMs)
  const windows = { cron, format, zone, bounds, startMs }
  const starts = startsOf(definition.exclusions ?? [], windows)
  const { endOffset = 0 } = definition
  if (!Number.isSafeInteger(endOffset))
    throw badWindow(
      `\`endOffset\` cannot be ${endOffset}`,
      'Write a whole number: 1 adds the window that is still open, -1 holds back the last closed one.',
    )
  const endMs = definition.end === undefined ? undefined : endOf(definition.end, windows)
  if (endMs !== undefined && endMs < startMs)
    throw badWindow(`\`start\` (${definition.start}) is after \`end\` (${definition.end})`, 'Swap them, or remove `end`.')
  if (starts.next(startMs) === undefined)
    throw badWindow(`no window is left from ${definition.start} on`, 'Check `exclusions`: they exclude every window.')
  return { zone, format, everyHour: cron.everyHour, bounds, starts, startMs, endMs, endOffset }
}

/** A key is the window before which to stop. A Wednesday written like the keys of weeks is none: its week is still open then. */
function endOf(end: string | number, windows: AllWindows): number {
  const ms = momentOf('end', end, windows.format, windows.zone)
  return windowCalled(end, ms, windows) ?? ms
}

/** All windows, before exclusions. */
interface AllWindows extends Pick<CheckedDefinition, 'format' | 'zone' | 'bounds' | 'startMs'> {
  readonly cron: Cron
}

/** When the window with a key begins. That may be later than the time in the key, as for a day that begins at six. */
function windowCalled(key: string | number, ms: number, { format, zone, bounds }: AllWindows): number | undefined {
  const next = bounds.next(ms)
  return next !== undefined && format.write(bounds.meantFor(next), zone.stretch(next).offsetMs) === key ? next : undefined
}

/** The starts of the windows that are not excluded. */
function startsOf(exclusions: readonly string[], windows: AllWindows): CountedTicks {
  const { cron, format, zone, bounds, startMs } = windows
  const left: number[] = []
  const expressions: Cron[] = []
  for (const text of exclusions) {
    const ms = readMoment(text, format, zone)
    if (ms === undefined) {
      if (!/[\s@]/.test(text))
        throw badWindow(
          `\`exclusions\`: ${JSON.stringify(text)} is not a time`,
          'Write the key of a window, such as a holiday, or a cron expression, such as 0 0 * * SAT,SUN.',
        )
      expressions.push(parseCron(text))
      continue
    }
    const begin = windowCalled(text, ms, windows) ?? ms
    if (bounds.next(begin) !== begin)
      throw badWindow(`\`exclusions\`: no window begins at ${text}`, 'Write its key, or the moment at which it begins.')
    left.push(begin)
  }
  const ticks = expressions.length === 0 ? bounds : new Ticks(zone, cron, new WallTimes(cron, expressions), startMs)
  return left.length === 0 ? ticks : new TicksWithout(ticks, left)
}

const iso = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:\.(\d{1,3})\d*)?)?)?)?(Z|[+-]\d\d:?\d\d)?$/i

/** The instant of a text or number. Without an offset it is what clocks in the zone show, the first time they do. */
export function momentOf(name: 'start' | 'end', value: string | number, format: TimeFormat | undefined, zone: Zone): number {
  const ms = typeof value === 'number' ? value : typeof value === 'string' ? readMoment(value, format, zone) : undefined
  const hint = `Write a key in the format${format ? ` ${format.text}` : ''}, or 2025-01-15 or 2025-01-15T06:00 or 2025-01-15T06:00:00+01:00.`
  if (ms === undefined || !Number.isFinite(ms))
    throw badWindow(`\`${name}\` must be a time, not ${JSON.stringify(value)}`, hint)
  const year = new Date(ms).getUTCFullYear()
  if (!(year > FIRST_YEAR && year < LAST_YEAR))
    throw badWindow(`\`${name}\` ${value} is out of range`, `Windows exist from ${FIRST_YEAR + 1} to ${LAST_YEAR - 1}.`)
  return ms
}

function readMoment(text: string, format: TimeFormat | undefined, zone: Zone): number | undefined {
  const shown = format?.read(text)
  if (shown !== undefined) return isCounted(shown.wallMs) ? instant(shown.wallMs, shown.offsetMs, zone) : shown.wallMs
  const found = iso.exec(text)
  if (found === null) return undefined
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', offset] = found
  const plain = `${year}-${month}-${day}T${hour}:${minute}:${second}.${fraction.padEnd(3, '0')}Z`
  const wallMs = Date.parse(plain)
  // Date.parse takes 30 February for 1 March.
  if (Number.isNaN(wallMs) || new Date(wallMs).toISOString() !== plain) return undefined
  if (!isCounted(wallMs)) return wallMs
  return offset === undefined ? zone.instantOf(wallMs) : wallMs - offsetOf(offset)
}

const instant = (wallMs: number, offsetMs: number | undefined, zone: Zone) =>
  offsetMs === undefined ? zone.instantOf(wallMs) : wallMs - offsetMs

function offsetOf(text: string): number {
  if (text.toUpperCase() === 'Z') return 0
  const [hours = 0, minutes = 0] = text.slice(1).replace(':', '').match(/\d\d/g)?.map(Number) ?? []
  return (text.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000
}

/** How many years have all there are: leap or not, each beginning on any weekday. */
const CYCLE_YEARS = 28

/** Refuses a format in which two windows have one key. Exclusions are not looked at: what they leave must be right on its own. */
function refuseSharedKeys(cron: Cron, format: TimeFormat): void {
  if (!mayShare(cron, format.resolution)) return
  const walls = wallTimesOf(cron)
  const last = walls.before(Date.UTC(2000 + CYCLE_YEARS, 0))
  let [before, key] = [-1, '']
  for (let index = walls.before(Date.UTC(2000, 0)); index < last; index++) {
    const wallMs = walls.at(index) as number
    const next = format.write(wallMs, 0)
    if (next === key) {
      const [a, b] = [before, wallMs].map((ms) => new Date(ms).toISOString().slice(0, 19))
      throw new ServoError(
        'invalid',
        'bad_key_format',
        `the key format ${JSON.stringify(format.text)} is too coarse for ${cron.text}: windows of ${a} and ${b} would both have the key ${key}`,
        {
          hint: 'Add a directive that distinguishes them, such as %Y-%m-%dT%H:%M.',
          facts: { format: format.text, cron: cron.text },
        },
      )
    }
    before = wallMs
    key = next
  }
}

/** Times of one day share a minute, hour or day when there are several; for days that share a week, month or year, every key is compared. */
function mayShare({ hours, minutes, seconds }: Cron, resolution: Resolution): boolean {
  if (resolution === 'second') return false
  if (resolution === 'minute') return seconds.length > 1
  if (resolution === 'hour') return minutes.length * seconds.length > 1
  return resolution !== 'day' || hours.length * minutes.length * seconds.length > 1
}

export function badWindow(why: string, hint: string, facts: Record<string, unknown> = {}): ServoError {
  return new ServoError('invalid', 'bad_window', why, { hint, facts })
}
