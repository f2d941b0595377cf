import { tickStatuses } from '../../contract/automation-statuses.ts'
import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'
import type { RunState } from '../runs/runs.table.ts'
import type { ScheduleRow } from './schedule-definitions.table.ts'

/**
 * A stretch of time in which a schedule had one definition and was either ticking or paused. Its ticks are those after `from` and not
 * after `until`.
 */
export interface Regime {
  readonly from: number
  readonly until: number
  readonly pause: Pause | null
  /** Whether missed ticks may still run: not those of a pause, unless it ended and the schedule catches up then. */
  readonly catchesUp: boolean
  /** Whether the next stretch ticks at the same moments: what may be caught up is counted over both. */
  readonly goesOn: boolean
  readonly definition: Readonly<ScheduleRow>
}

export interface Pause {
  /** Since when the schedule is paused with the moments that it has now. */
  readonly since: number
  /** When it was paused. */
  readonly at: number | null
  readonly by: string | null
  readonly reason: string | null
  /** Whether all automation was paused, not only this schedule. */
  readonly everything: boolean
}

/** A stretch of time, after one moment and not after another, of which every tick was triggered. */
export interface TriggeredSpan {
  readonly after: number
  readonly until: number
  /** What said when the schedule ticks; absent if that is still so. */
  readonly moments?: { readonly cron_expressions: readonly string[]; readonly timezone: string }
}

/** Ticks that were skipped together and are one record. */
export interface SkippedSpan {
  readonly tick_id: string
  readonly first: number
  readonly last: number
  /** How many of them were not triggered since. */
  readonly left: number
  readonly moments: { readonly cron_expressions: readonly string[]; readonly timezone: string }
}

/** How a run of a schedule ended. */
export interface EndedRun {
  readonly run_id: string
  /** Ends that an earlier version recorded have none. */
  readonly run_key?: string
  readonly requested_at: number
  readonly state: RunState
}

export const scheduleState = defineTable({
  name: 'schedule_state',
  doc: 'The state of each schedule.',
  key: ['schedule_id'],
  storage: { kind: 'hot' },
  columns: {
    schedule_id: col.string('The schedule.'),
    status: col.oneOf(['ACTIVE', 'PAUSED'], 'A paused schedule records its ticks as skipped.'),
    status_changed_at: col.optional(col.timestamp('When it was paused or resumed.')),
    status_changed_by: col.optional(col.string('Who paused or resumed it.')),
    status_reason: col.optional(col.string('Why.')),
    state_version: col.int('How often the schedule was declared, changed, paused, resumed or removed.'),
    paused_since: col.optional(
      col.timestamp('Since when it has been paused with its present ticks, by itself or with all automation.'),
    ),
    decided_until: col.optional(
      col.timestamp('Every tick up to here is on record or was never due; later ones follow the present definition.'),
    ),
    clock_turns: col.optional(
      col.int('How often a clock that was ahead was set back, so that ticks were decided anew; null for never.'),
    ),
    undecided: col.json<readonly Regime[]>(
      'Stretches of time before that whose ticks are still to be recorded, with the definition of then.',
    ),
    asked_ahead: col.optional(
      col.json<readonly number[]>(
        'Ticks among those still to be recorded that somebody has triggered already, in milliseconds; null if there is none.',
      ),
    ),
    triggered: col.optional(
      col.json<readonly TriggeredSpan[]>(
        'Stretches of time of which every tick was triggered, the latest of them: a clock that is set back repeats none.',
      ),
    ),
    skipped: col.optional(
      col.json<readonly SkippedSpan[]>(
        'The latest records of ticks that were skipped together: one that is triggered now is taken out of their number.',
      ),
    ),
    last_scheduled_for: col.optional(col.timestamp('The latest tick on record.')),
    last_tick_id: col.optional(col.string('That tick.')),
    last_tick_event_id: col.optional(col.string('The event that recorded it.')),
    last_tick_status: col.optional(col.oneOf(tickStatuses, 'Triggered, skipped or failed.')),
    last_tick_reason: col.optional(col.string('Why it was skipped or failed.')),
    late_tick: col.optional(
      col.timestamp('The latest tick that was decided more than five minutes after its moment; null if none was.'),
    ),
    late_tick_at: col.optional(col.timestamp('When it was decided.')),
    last_run_key: col.optional(col.string('The run it requested, if any.')),
    open_runs: col.strings('Its unfinished runs.'),
    recent_runs: col.json<readonly EndedRun[]>('How its latest runs ended.'),
    counted_runs: col.optional(
      col.json<readonly string[]>(
        'The run keys of its ticks since it was last resumed, in the order of the ledger: those whose runs have not ended, and the last that have.',
      ),
    ),
  },
})

export type ScheduleStateRow = Row<typeof scheduleState>
