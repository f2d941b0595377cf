import type { ScheduleRow } from '../schedule-definitions.table.ts'
import type { Regime, ScheduleStateRow, TriggeredSpan } from '../schedule-state.table.ts'
import { cadenceIfAny } from './cadence-if-any.ts'

type Moments = Pick<ScheduleRow, 'cron_expressions' | 'timezone'>

/** More are needed only if a clock is set back past as many turns between triggered and skipped ticks. */
const KEPT_SPANS = 16

export const sameMoments = (one: Moments | undefined, other: Moments | undefined): boolean =>
  one?.timezone === other?.timezone && JSON.stringify(one?.cron_expressions) === JSON.stringify(other?.cron_expressions)

/** Notes that the ticks after one moment and not after another were triggered; `moments` if they are not those of the schedule as it is. */
export function addTriggered(state: ScheduleStateRow, after: number, until: number, moments?: Moments): void {
  const spans = state.triggered ?? []
  const last = spans.at(-1)
  if (last !== undefined && last.until === after && sameMoments(last.moments, moments))
    state.triggered = [...spans.slice(0, -1), { ...last, until }]
  else state.triggered = [...spans, { after, until, ...(moments && { moments: momentsOf(moments) }) }].slice(-KEPT_SPANS)
}

/** The schedule ticks at other moments from now on. */
export function keepMoments(state: ScheduleStateRow, before: Moments): void {
  state.triggered = state.triggered?.map((span) => ({ moments: momentsOf(before), ...span })) ?? null
}

const momentsOf = ({ cron_expressions, timezone }: Moments) => ({ cron_expressions, timezone })

/**
 * Ticks of a stretch of time that is to be decided that are triggered already: by somebody who asked for them, or by a clock that was ahead
 * and was set back. There is none, unless either happened.
 */
export function triggeredAlready(
  { asked_ahead, triggered }: Readonly<ScheduleStateRow>,
  { from, until, definition }: Regime,
  now: number,
): number[] {
  const to = Math.min(until, now)
  const spans = (triggered ?? []).filter((span) => span.until > from && span.after < to)
  if (asked_ahead === null && spans.length === 0) return []
  const cadence = cadenceIfAny(definition)
  const found = new Set(asked_ahead)
  for (const span of spans) for (const tick of ticksOf(span, definition, from, to)) found.add(tick)
  return [...found].filter((tick) => from < tick && tick <= to && cadence?.has(tick) === true).sort((a, b) => a - b)
}

function* ticksOf(span: TriggeredSpan, definition: Readonly<ScheduleRow>, from: number, to: number): Iterable<number> {
  const cadence = cadenceIfAny({ ...definition, start_at: null, end_at: null, ...span.moments })
  const last = Math.min(span.until, to)
  let tick = cadence?.after(Math.max(span.after, from))
  for (; tick !== undefined && tick <= last; tick = cadence?.after(tick)) yield tick
}
