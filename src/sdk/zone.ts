import { DAY_MS, HOUR_MS } from '../lib/time.ts'
import type { PartitionData, TimeUnit, Window } from './partitions.ts'

export function isZone(name: unknown): name is string {
  if (typeof name !== 'string' || name === '') return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/** The window of a time key: local midnight to local midnight (or hour to hour) in its zone. */
export function windowOf(data: PartitionData, key: string): Window | undefined {
  if (!('timezone' in data)) return undefined
  const start = wallClock(key)
  return { start: instantOf(start, data.timezone), end: instantOf(next(data.type, start), data.timezone) }
}

/** What the clock on the wall shows, as if it were UTC. */
const wallClock = (key: string): number => Date.parse(`${key}${'2025-01-01T00:00:00.000Z'.slice(key.length)}`)

function next(type: TimeUnit, wall: number): number {
  if (type === 'hourly') return wall + HOUR_MS
  if (type === 'daily') return wall + DAY_MS
  if (type === 'weekly') return wall + 7 * DAY_MS
  const date = new Date(wall)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** How far the zone is ahead of UTC at an instant. */
function offsetMs(instant: number, zone: string): number {
  const known = formats.get(zone)
  const format =
    known ??
    new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
    })
  if (known === undefined) formats.set(zone, format)
  const part = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]))
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(instant / 1000) * 1000
}

/**
 * The first instant at which the wall clock of a zone shows this time or, when clocks jump over it, the instant of the jump:
 * windows then leave no gap and do not overlap.
 */
function instantOf(wall: number, zone: string): Date {
  // The offsets a day before and after are those on both sides of any change near this moment.
  const [before, after] = [offsetMs(wall - DAY_MS, zone), offsetMs(wall + DAY_MS, zone)]
  const shown = [before, after].map((offset) => wall - offset).filter((instant) => instant + offsetMs(instant, zone) === wall)
  if (shown.length > 0) return new Date(Math.min(...shown))
  return new Date(jumpBetween(wall - Math.max(before, after), wall - Math.min(before, after), zone))
}

/** Where the offset changes between two instants, found by halving. */
function jumpBetween(from: number, to: number, zone: string): number {
  const offset = offsetMs(from, zone)
  let [same, changed] = [from, to]
  while (changed - same > 1) {
    const middle = Math.floor((same + changed) / 2)
    if (offsetMs(middle, zone) === offset) same = middle
    else changed = middle
  }
  return changed
}
