import { assert } from '../lib/assert.ts'
import { lastAtMost } from '../lib/collections/binary-search.ts'
import { DAY_MS } from '../lib/time.ts'
import type { Cron } from './parse-cron.ts'
import { FIRST_YEAR, LAST_YEAR, WallTimes } from './wall-times.ts'
import { type Stretch, type Zone, zoneNamed } from './zone-clocks.ts'

/** No clock is further from UTC than 26 hours, nor was one ever put by more than 24. */
const SLACK_MS = 2 * DAY_MS
const FIRST_MS = Date.UTC(FIRST_YEAR, 1, 1)
const LAST_MS = Date.UTC(LAST_YEAR + 1, 0, 1)
const clampMs = (ms: number) => Math.min(Math.max(ms, FIRST_MS), LAST_MS)

/** A stretch as the clock shows it: from where to where, how many times are before it, and how many ticks it has. */
interface Counts {
  readonly firstMs: number
  readonly endMs: number
  readonly before: number
  /** 1 if it begins with a tick that clocks jumped over. */
  readonly moved: number
  readonly count: number
}

/**
 * The instants of an expression in a zone. When clocks are changed:
 * - an expression for every hour follows time: what the clocks jump over is left out, what they show twice comes twice;
 * - any other follows the clock: what they jump over comes at the instant of the jump, what they show twice comes once, the
 *   second time. Ticks that meet at the instant of a jump are one.
 * Between two changes both are the wall times of the stretch, so counting is subtraction: a few binary searches per question,
 * and once per year that lies between `sinceMs` and the answer the ticks of that year.
 */
export class Ticks {
  private readonly zone: Zone
  private readonly walls: WallTimes
  private readonly everyHour: boolean
  private readonly sinceMs: number
  /** How many ticks there are from the year of `sinceMs`, the base, until the beginning of each year from there on. */
  private readonly beforeYear: number[] = [0]
  private readonly counts = new WeakMap<Stretch, Counts>()

  constructor(zone: Zone, cron: Cron, walls: WallTimes = wallTimesOf(cron), sinceMs = 0) {
    this.zone = zone
    this.walls = walls
    this.everyHour = cron.everyHour
    this.sinceMs = clampMs(sinceMs)
  }

  /** The first tick at or after an instant; undefined when there is none in the years we know. */
  next(ms: number): number | undefined {
    if (ms > LAST_MS) return undefined
    let from = Math.ceil(clampMs(ms))
    for (;;) {
      const stretch = this.zone.stretch(from)
      const index = this.countIn(stretch, from)
      if (index < this.countIn(stretch, stretch.toMs)) return this.tickIn(stretch, index)
      // 29 February on a Monday is up to 40 years away: go to where the clock shows the next tick, not through every change.
      const shown = stretch.toMs + Math.min(stretch.offsetMs, stretch.afterMs)
      const wall = this.walls.at(this.walls.before(shown))
      if (wall === undefined) return undefined
      from = Math.max(stretch.toMs, wall - SLACK_MS)
    }
  }

  /** The last tick at or before an instant. */
  previous(ms: number): number | undefined {
    if (ms < FIRST_MS) return undefined
    let until = Math.floor(clampMs(ms))
    for (;;) {
      const stretch = this.zone.stretch(until)
      const count = this.countIn(stretch, until + 1)
      if (count > 0) return this.tickIn(stretch, count - 1)
      const shown = stretch.fromMs + Math.max(stretch.offsetMs, stretch.beforeMs)
      const wall = this.walls.at(this.walls.before(shown) - 1)
      if (wall === undefined) return undefined
      until = Math.min(stretch.fromMs - 1, wall + SLACK_MS)
    }
  }

  /** How many ticks there are before an instant, from the base year on; negative before that. */
  rank(ms: number): number {
    const instant = clampMs(ms)
    const year = this.zone.yearOf(instant)
    const inYear = this.countUntil(year, instant)
    if (year >= this.baseYear) return this.before(year) + inYear
    let rank = inYear
    for (let earlier = year; earlier < this.baseYear; earlier++) rank -= this.countUntil(earlier, Number.POSITIVE_INFINITY)
    return rank
  }

  /** The tick of a rank from 0 on. */
  at(rank: number): number | undefined {
    let last = this.baseYear + this.beforeYear.length - 1
    while (this.counted <= rank && last <= LAST_YEAR) this.before(++last)
    if (this.counted <= rank) return undefined
    const index = lastAtMost(this.beforeYear, rank)
    let left = rank - (this.beforeYear[index] ?? 0)
    for (const stretch of this.zone.year(this.baseYear + index).stretches) {
      const count = this.countIn(stretch, stretch.toMs)
      if (left < count) return this.tickIn(stretch, left)
      left -= count
    }
    return undefined
  }

  /** The last time the clock would have shown before this instant, had it not jumped over it: what this tick was meant for. */
  meantFor(tickMs: number): number {
    const stretch = this.zone.stretch(tickMs)
    const wall = tickMs + stretch.offsetMs
    const moved = tickMs === stretch.fromMs && this.isMoved(stretch)
    return moved ? (this.walls.at(this.walls.before(wall) - 1) ?? wall) : wall
  }

  private get baseYear(): number {
    return this.zone.yearOf(this.sinceMs)
  }

  /** How many ticks are before the last year that was counted. */
  private get counted(): number {
    return this.beforeYear.at(-1) ?? 0
  }

  private before(year: number): number {
    const { beforeYear, baseYear } = this
    for (let known = beforeYear.length; known <= year - baseYear; known++) {
      beforeYear.push(this.counted + this.countUntil(baseYear + known - 1, Number.POSITIVE_INFINITY))
    }
    return beforeYear[year - baseYear] ?? 0
  }

  /** Ticks of a year that are before an instant. */
  private countUntil(year: number, ms: number): number {
    let count = 0
    for (const stretch of this.zone.year(year).stretches) {
      if (ms <= stretch.fromMs) break
      count += this.countIn(stretch, Math.min(ms, stretch.toMs))
    }
    return count
  }

  /** Ticks of a stretch that are before an instant of it. */
  private countIn(stretch: Stretch, ms: number): number {
    const { offsetMs, fromMs, toMs } = stretch
    const { firstMs, endMs, before, count, moved } = this.countsOf(stretch)
    if (ms >= toMs) return count
    const until = Math.max(firstMs, Math.min(ms + offsetMs, endMs))
    return this.walls.before(until) - before + (ms > fromMs ? moved : 0)
  }

  private tickIn(stretch: Stretch, index: number): number {
    const { before, moved } = this.countsOf(stretch)
    if (moved === 1 && index === 0) return stretch.fromMs
    const wall = this.walls.at(before + index - moved)
    assert(wall !== undefined, 'a stretch has as many ticks as were counted in it')
    return wall - stretch.offsetMs
  }

  /** The values that are the same for every question about a stretch. */
  private countsOf(stretch: Stretch): Counts {
    const known = this.counts.get(stretch)
    if (known !== undefined) return known
    const { fromMs, toMs, offsetMs, afterMs } = stretch
    const firstMs = fromMs + offsetMs
    // Times that will be shown a second time come then, unless time is followed.
    const endMs = Math.max(firstMs, toMs + (this.everyHour ? offsetMs : Math.min(offsetMs, afterMs)))
    const before = this.walls.before(firstMs)
    const moved = this.isMoved(stretch) ? 1 : 0
    const counts = { firstMs, endMs, before, moved, count: this.walls.before(endMs) - before + moved }
    this.counts.set(stretch, counts)
    return counts
  }

  /** True if a stretch begins with a tick that the clocks jumped over, and has no other tick at that instant. */
  private isMoved({ fromMs, offsetMs, beforeMs }: Stretch): boolean {
    if (this.everyHour || beforeMs >= offsetMs) return false
    const first = fromMs + offsetMs
    return this.walls.before(first) > this.walls.before(fromMs + beforeMs) && !this.walls.has(first)
  }
}

const known = new WeakMap<Cron, WallTimes>()

export function wallTimesOf(cron: Cron): WallTimes {
  const walls = known.get(cron) ?? new WallTimes(cron)
  known.set(cron, walls)
  return walls
}

interface From {
  /** True if a tick at that very instant counts. */
  readonly inclusive?: boolean
}

/** The first tick after an instant; undefined when there is none before the year 2200. */
export function nextTick(cron: Cron, zone: string, afterMs: number, { inclusive = false }: From = {}): number | undefined {
  return new Ticks(zoneNamed(zone), cron).next(inclusive ? afterMs : Math.floor(afterMs) + 1)
}

/** The last tick before an instant. */
export function previousTick(cron: Cron, zone: string, beforeMs: number, { inclusive = false }: From = {}): number | undefined {
  return new Ticks(zoneNamed(zone), cron).previous(inclusive ? beforeMs : Math.ceil(beforeMs) - 1)
}

/** All ticks at or after an instant, in order. */
export function* ticksFrom(cron: Cron, zone: string, fromMs: number): Generator<number, void, undefined> {
  const ticks = new Ticks(zoneNamed(zone), cron)
  for (let tick = ticks.next(fromMs); tick !== undefined; tick = ticks.next(tick + 1)) yield tick
}
