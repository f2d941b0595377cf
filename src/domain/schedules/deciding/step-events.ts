import { toIso } from '../../../lib/time.ts'
import { type NewEvent, newEvent } from '../../../model/event.ts'
import { ScheduleCaughtUp } from '../schedule-caught-up.event.ts'
import type { ScheduleRow } from '../schedule-definitions.table.ts'
import { ScheduleTicksSkipped } from '../schedule-ticks-skipped.event.ts'
import type { Due } from './due.ts'

interface CaughtUp {
  readonly until: number
  readonly insteadOf?: number
}

/** Everything that was due until a moment is on record; `insteadOf` is how far a clock that was ahead had decided. */
export const caughtUp = (schedule_id: string, { until, insteadOf }: CaughtUp): NewEvent =>
  newEvent(ScheduleCaughtUp, {
    schedule_id,
    until: toIso(until),
    ...(insteadOf !== undefined && { instead_of: toIso(insteadOf) }),
  })

/** Ticks that were skipped together. */
export function skipped(definition: Readonly<ScheduleRow>, due: Extract<Due, { kind: 'skip' }>, clock_turn: number): NewEvent {
  const { schedule_id, row_version, cron_expressions, timezone } = definition
  return newEvent(
    ScheduleTicksSkipped,
    {
      schedule_id,
      first: toIso(due.first),
      last: toIso(due.last),
      tick_count: due.count,
      clock_turn,
      definition_version: row_version,
      cron_expressions: [...cron_expressions],
      timezone,
      reason_code: due.code,
      reason: due.reason,
      reason_facts: due.facts,
    },
    { causation_id: row_version },
  )
}
