import { MINUTE_MS, toIso } from '../../../lib/time.ts'
import { cadenceIfAny } from '../moments/cadence-if-any.ts'
import type { Pause, Regime } from '../schedule-state.table.ts'
import type { ReasonFacts, skipCodes } from '../schedule-ticks.table.ts'

/** What is to become of ticks that are due. */
export type Due =
  | { readonly kind: 'run'; readonly tick: number; readonly cause: 'cron' | 'catch_up' }
  | {
      readonly kind: 'skip'
      readonly first: number
      readonly last: number
      readonly count: number
      readonly code: (typeof skipCodes)[number]
      readonly reason: string
      readonly facts: ReasonFacts
    }

/** A tick that is younger than this is on time. */
const ON_TIME_MS = MINUTE_MS

interface Bounds {
  readonly now: number
  /** How many missed ticks the schedule catches up on at most. Asked only if ticks were missed. */
  readonly most: () => number
  /** How many of them later stretches have chosen. */
  readonly chosenLater: number
  /** Whether no later stretch that goes on from this one has a tick. */
  readonly isNewest: boolean
  /** Ticks of the stretch that are triggered already. */
  readonly triggered: readonly number[]
}

/**
 * What becomes of the ticks of a stretch of time, oldest first. The newest tick runs if it is on time. Of the others, which were missed, the newest
 * run: those inside the window, at most so many. The rest is skipped, with the reason. A tick that lies beyond the present is not due: the clock
 * that ended the stretch was ahead.
 */
export function dueIn(regime: Regime, { now, most: mostOf, chosenLater, isNewest, triggered }: Bounds): Due[] {
  const { from, pause, catchesUp, definition } = regime
  const until = Math.min(regime.until, now)
  const cadence = cadenceIfAny(definition)
  if (cadence === undefined) return []
  const newest = cadence.until(until)
  if (newest === undefined || newest <= from) return []
  const isOnTime = isNewest && pause === null && now - newest < ON_TIME_MS
  // Mostly nothing was missed.
  if (isOnTime && triggered.length === 0 && (cadence.until(newest - 1) ?? from) <= from)
    return [{ kind: 'run', tick: newest, cause: 'cron' }]
  const missedUntil = isOnTime ? newest - 1 : until
  const windowMs = definition.catchup_window_minutes * MINUTE_MS
  const mayCatchUp = catchesUp && windowMs > 0
  const most = mostOf()
  const windowStart = now - windowMs
  const left = Math.max(0, most - chosenLater)
  const already = new Set(triggered)
  const among = (after: number, to: number): number => triggered.filter((tick) => after < tick && tick <= to).length
  const newestMissed = mayCatchUp ? cadence.newest(left + triggered.length, Math.max(from, windowStart - 1), missedUntil) : []
  const missed = newestMissed.filter((tick) => !already.has(tick))
  const chosen = left === 0 ? [] : missed.slice(-left)
  const skippedUntil = (chosen[0] ?? missedUntil + 1) - 1

  const due: Due[] = []
  type Why = { readonly code: (typeof skipCodes)[number]; readonly reason: string; readonly facts: ReasonFacts }
  const skip = (after: number, to: number, why: Why): void => {
    const first = cadence.after(after)
    const last = cadence.until(to)
    if (first === undefined || last === undefined || first > last) return
    const count = cadence.count(after, last) - among(after, last)
    if (count > 0) due.push({ kind: 'skip', first, last, count, ...why })
  }
  if (pause !== null) skip(from, skippedUntil, { code: 'paused', reason: pausedText(pause), facts: pauseFacts(pause) })
  else {
    const outside = mayCatchUp ? Math.min(windowStart - 1, skippedUntil) : from
    const reason = `missed, and older than the catch-up window (${minutesInWords(definition.catchup_window_minutes)})`
    const limit = mayCatchUp ? most : 0
    const facts = { window_minutes: definition.catchup_window_minutes, most: limit }
    if (mayCatchUp) skip(from, outside, { code: 'catchup_window', reason, facts })
    skip(Math.max(from, outside), skippedUntil, { code: 'catchup_limit', reason: limitText(limit), facts })
  }
  for (const tick of chosen) due.push({ kind: 'run', tick, cause: 'catch_up' })
  if (isOnTime && !already.has(newest)) due.push({ kind: 'run', tick: newest, cause: 'cron' })
  return due
}

export function pausedText({ by, reason, everything }: Pause): string {
  const what = everything ? 'all automation was paused' : 'paused'
  return `${what}${by === null ? '' : ` by ${by}`}${reason === null || reason === '' ? '' : `: ${reason}`}`
}

const pauseFacts = ({ at, by, reason, everything }: Pause): ReasonFacts => ({
  paused_by: by,
  paused_at: at === null ? null : toIso(at),
  pause_reason: reason,
  is_everything: everything,
})

const limitText = (most: number): string =>
  most === 0
    ? 'missed while no server ran; the schedule has no catch-up'
    : most === 1
      ? 'missed while no server ran; only the newest missed tick is caught up'
      : `missed while no server ran; only the newest ${most} missed ticks are caught up`

/** `24 h`, `3 d`, `90 min`. */
export function minutesInWords(minutes: number): string {
  if (minutes > 0 && minutes % 1_440 === 0) return minutes === 1_440 ? '24 h' : `${minutes / 1_440} d`
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${minutes} min`
}
