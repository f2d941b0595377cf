import type { ScheduleStateRow, SkippedSpan } from '../schedule-state.table.ts'
import { sameMoments } from './triggered-spans.ts'

/** More would have to be recorded between the moment at which a request looks for the record of a tick and the fold of that tick. */
const KEPT_SPANS = 16

/** Remembers ticks that were skipped together: somebody who looked for their record before it was there may be about to trigger one. */
export function addSkipped(state: ScheduleStateRow, span: SkippedSpan): void {
  if (span.first !== span.last) state.skipped = [...(state.skipped ?? []), span].slice(-KEPT_SPANS)
}

interface TakenTick {
  readonly tick: number
  /** What it is a tick of. */
  readonly moments: SkippedSpan['moments'] | undefined
  /** The record that was found for it when it was asked for. */
  readonly found: { readonly tick_id: string; readonly tick_count: number | null } | undefined
}

/**
 * Takes a tick that somebody triggered out of those that were skipped together, and returns what their record says now. If none was found when
 * the tick was asked for, one may have been written since.
 */
export function takeOut(state: ScheduleStateRow, { tick, moments, found }: TakenTick) {
  const isAmong = (span: SkippedSpan): boolean => span.first <= tick && tick <= span.last && sameMoments(span.moments, moments)
  const span = found === undefined ? state.skipped?.findLast(isAmong) : { tick_id: found.tick_id, left: found.tick_count }
  if (span?.left == null) return undefined
  const left = span.left - 1
  state.skipped = state.skipped?.map((one) => (one.tick_id === span.tick_id ? { ...one, left } : one)) ?? null
  return { tick_id: span.tick_id, tick_count: left }
}
