import { DAY_MS, HOUR_MS, MINUTE_MS } from '../lib/time.ts'
import type { Cron } from './parse-cron.ts'
import { Ticks, wallTimesOf } from './ticks.ts'
import { inSeries } from './word-lists.ts'
import type { Zone } from './zone-clocks.ts'

/** The instant at which the clocks of a zone are put forward or back. */
export interface ClockChange {
  readonly atMs: number
  /** How far clocks are ahead of UTC before and after. */
  readonly beforeMs: number
  readonly afterMs: number
}

/** The changes after one instant and not after another. */
export function clockChanges(zone: Zone, afterMs: number, untilMs: number): ClockChange[] {
  const changes: ClockChange[] = []
  for (let { toMs } = zone.stretch(afterMs); toMs <= untilMs; ) {
    const next = zone.stretch(toMs)
    // Stretches end with the year too.
    if (next.beforeMs !== next.offsetMs) changes.push({ atMs: toMs, beforeMs: next.beforeMs, afterMs: next.offsetMs })
    toMs = next.toMs
  }
  return changes
}

/** `clocks go forward at 02:00`; by how much, where it is not an hour. */
export function changeInWords({ atMs, beforeMs, afterMs }: ClockChange): string {
  const byMs = Math.abs(afterMs - beforeMs)
  const by = byMs === HOUR_MS ? '' : ` by ${byMs % HOUR_MS === 0 ? `${byMs / HOUR_MS} hours` : `${byMs / MINUTE_MS} minutes`}`
  return `clocks go ${afterMs > beforeMs ? 'forward' : 'back'}${by} at ${clockText(atMs + beforeMs)}`
}

/** What a change does to the times of an expression that clocks jump over, or show twice; undefined when it has none of them. */
export function effectInWords(change: ClockChange, cron: Cron): string | undefined {
  const { atMs, beforeMs, afterMs } = change
  const isForward = afterMs > beforeMs
  const walls = wallTimesOf(cron)
  const from = walls.before(atMs + Math.min(beforeMs, afterMs))
  const count = walls.before(atMs + Math.max(beforeMs, afterMs)) - from
  const [first, last] = [walls.at(from), walls.at(from + count - 1)]
  if (count === 0 || first === undefined || last === undefined) return undefined
  const times = count === 1 ? clockText(first) : `${clockText(first)} to ${clockText(last)}`
  const [runs, has] = count === 1 ? ['runs', 'has'] : ['run', 'have']
  if (cron.everyHour) return isForward ? `${times} ${has} no tick` : `${times} ${runs} twice`
  if (isForward) return `${times} ${runs} ${count === 1 ? '' : 'once, '}at ${clockText(atMs + afterMs)}`
  return `${times} ${runs} once, the second time`
}

/**
 * What to say of a tick because clocks are changed near it: when they show its time twice, and when it is the first one since a
 * change of the last day. `sinceMs` is the tick before, or from where ticks are listed.
 */
export function clockNote(crons: readonly Cron[], zone: Zone, tickMs: number, sinceMs: number): string | undefined {
  for (const change of clockChanges(zone, tickMs - DAY_MS, tickMs + DAY_MS).reverse()) {
    const repeatedMs = change.beforeMs - change.afterMs
    const isShownTwice = tickMs >= change.atMs - repeatedMs && tickMs < change.atMs + repeatedMs
    if (isShownTwice) return `${changeInWords(change)}; ${timeShownTwice(crons, zone, tickMs, change)}`
    if (change.atMs <= tickMs && change.atMs > sinceMs) {
      const isForward = repeatedMs < 0
      // Of times that are shown twice, the ticks themselves tell.
      const effects = isForward ? new Set(crons.flatMap((cron) => effectInWords(change, cron) ?? [])) : []
      return [changeInWords(change), inSeries([...effects])].filter((text) => text !== '').join('; ')
    }
  }
  return undefined
}

function timeShownTwice(crons: readonly Cron[], zone: Zone, tickMs: number, { atMs }: ClockChange): string {
  const time = clockText(zone.wallAt(tickMs))
  const isTwice = crons.some((cron) => cron.everyHour && new Ticks(zone, cron).next(tickMs) === tickMs)
  if (!isTwice) return `${time} runs once, the second time`
  return `${time} runs twice, this is the ${tickMs < atMs ? 'first' : 'second'} time`
}

/** `02:30`, and the seconds where there are some. */
function clockText(wallMs: number): string {
  const text = new Date(wallMs).toISOString().slice(11, 19)
  return text.endsWith(':00') ? text.slice(0, 5) : text
}
