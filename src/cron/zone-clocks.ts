import { assert } from '../lib/assert.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../lib/time.ts'
import { checkZoneName } from './zone-name.ts'

/** Time during which the clocks of a zone are not changed. */
export interface Stretch {
  readonly fromMs: number
  readonly toMs: number
  /** How far its clocks are ahead of UTC, and how far they were before and will be after. */
  readonly offsetMs: number
  readonly beforeMs: number
  readonly afterMs: number
}

interface ZoneYear {
  readonly fromMs: number
  readonly toMs: number
  readonly stretches: readonly Stretch[]
}

/** Since 1950 there were never, and in no forecast are there, two changes of the clocks of a zone within less than 6.9 days. */
const STEP_MS = 6 * DAY_MS
/** Longer than clocks were ever put back or forward: 24 hours, where the date line was moved. */
const QUIET_MS = 2 * DAY_MS

/**
 * When the clocks of a zone are changed, found by reading its offset every six days and bisecting where it differs: about
 * 80 reads per year, once. A read takes Intl two microseconds, and it is the only source of zones that needs no
 * dependency: docs/adr/0020.
 */
export class Zone {
  readonly name: string
  private readonly offsetAt: (ms: number) => number
  private readonly years = new Map<number, ZoneYear>()
  private readonly quietDays = new Map<number, number>()
  private latest: Stretch | undefined

  constructor(name: string, offsetAt: (ms: number) => number) {
    this.name = name
    this.offsetAt = offsetAt
  }

  /** The stretch that an instant is in. Stretches also end with the year, where nothing changes. */
  stretch(ms: number): Stretch {
    const { latest } = this
    if (latest !== undefined && ms >= latest.fromMs && ms < latest.toMs) return latest
    const stretch = this.year(this.yearOf(ms)).stretches.find((it) => ms < it.toMs)
    assert(stretch !== undefined, 'the stretches of a year fill it')
    this.latest = stretch
    return stretch
  }

  /** A year, which begins on a quiet day of January: changes at New Year, and what they do to the hours around, are inside. */
  year(year: number): ZoneYear {
    const known = this.years.get(year)
    if (known !== undefined) return known
    const [fromMs, toMs] = [this.quietDayOf(year), this.quietDayOf(year + 1)]
    const made = { fromMs, toMs, stretches: this.stretchesBetween(fromMs, toMs) }
    this.years.set(year, made)
    return made
  }

  yearOf(ms: number): number {
    const year = new Date(ms).getUTCFullYear()
    return ms < this.quietDayOf(year) ? year - 1 : year
  }

  wallAt(ms: number): number {
    return ms + this.stretch(ms).offsetMs
  }

  /** What clocks show, and how far they are from UTC: `2024-03-10T00:00:00-05:00`. Offsets had seconds until 1972. */
  textAt(ms: number): string {
    const { offsetMs } = this.stretch(ms)
    const size = new Date(Math.abs(offsetMs)).toISOString()
    const offset = size.slice(11, size.endsWith(':00.000Z') ? 16 : 19)
    return `${new Date(ms + offsetMs).toISOString().slice(0, 19)}${offsetMs < 0 ? '-' : '+'}${offset}`
  }

  /** The first or last instant at which clocks show this time; when they jump over it, the instant of the jump. */
  instantOf(wallMs: number, which: 'first' | 'last' = 'first'): number {
    let stretch = this.stretch(wallMs - QUIET_MS)
    while (wallMs >= stretch.toMs + stretch.offsetMs) stretch = this.stretch(stretch.toMs)
    const isRepeated = wallMs >= stretch.toMs + stretch.afterMs
    if (isRepeated && which === 'last') return wallMs - stretch.afterMs
    return Math.max(stretch.fromMs, wallMs - stretch.offsetMs)
  }

  private quietDayOf(year: number): number {
    const known = this.quietDays.get(year)
    if (known !== undefined) return known
    let ms = Date.UTC(year, 0, 10)
    while (this.offsetAt(ms - QUIET_MS) !== this.offsetAt(ms + QUIET_MS)) ms += 2 * QUIET_MS
    this.quietDays.set(year, ms)
    return ms
  }

  private stretchesBetween(fromMs: number, toMs: number): Stretch[] {
    const changes: { at: number; offsetMs: number }[] = []
    let offsetMs = this.offsetAt(fromMs)
    const first = offsetMs
    for (let at = fromMs; at < toMs; at += STEP_MS) {
      const next = Math.min(at + STEP_MS, toMs)
      const then = this.offsetAt(next)
      if (then === offsetMs) continue
      changes.push({ at: this.changeBetween(at, next, offsetMs), offsetMs: then })
      offsetMs = then
    }
    return [{ at: fromMs, offsetMs: first }, ...changes].map((change, index) => ({
      fromMs: change.at,
      toMs: changes[index]?.at ?? toMs,
      offsetMs: change.offsetMs,
      beforeMs: changes[index - 2]?.offsetMs ?? first,
      afterMs: changes[index]?.offsetMs ?? offsetMs,
    }))
  }

  /** Most changes are on the hour, so full hours come first; then minutes; Monrovia in 1972 needed seconds. */
  private changeBetween(fromMs: number, toMs: number, offsetMs: number): number {
    let [same, changed] = [fromMs, toMs]
    for (const unit of [HOUR_MS, MINUTE_MS, SECOND_MS]) {
      while (changed - same > unit) {
        const middle = same + Math.floor((changed - same) / unit / 2) * unit
        if (this.offsetAt(middle) === offsetMs) same = middle
        else changed = middle
      }
      if (unit === SECOND_MS || this.offsetAt(changed - SECOND_MS) === offsetMs) break
    }
    return changed
  }
}

/** A project names a few zones; all the world's are 600, and a hundred years of one take 30 kB. */
const KEPT_ZONES = 50
const zones = new Map<string, Zone>()

export function zoneNamed(name: string): Zone {
  const known = zones.get(name)
  if (known !== undefined) return known
  const zone = new Zone(name, offsetsOf(name))
  const [oldest] = zones.keys()
  if (oldest !== undefined && zones.size >= KEPT_ZONES) zones.delete(oldest)
  zones.set(name, zone)
  return zone
}

/** The offset of a zone at an instant, in milliseconds. */
export function offsetsOf(name: string): (ms: number) => number {
  // The first call of Intl takes tens of milliseconds.
  if (name === 'UTC') return () => 0
  const format = formatOf(name)
  if (format.resolvedOptions().timeZone === 'UTC') return () => 0
  return (ms) => {
    const [, sign, hours, minutes, seconds] = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(format.format(ms)) ?? []
    if (sign === undefined) return 0
    const offset = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds ?? 0)) * SECOND_MS
    return sign === '-' ? -offset : offset
  }
}

function formatOf(name: string): Intl.DateTimeFormat {
  checkZoneName(name)
  return new Intl.DateTimeFormat('en-US', { timeZone: name, hour: 'numeric', timeZoneName: 'longOffset' })
}
