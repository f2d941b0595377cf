import type { Rows } from '../../model/rows.ts'
import { isRunOver, type RunRow } from '../runs/runs.table.ts'
import { editScheduleState } from './regime.ts'
import type { EndedRun, ScheduleStateRow } from './schedule-state.table.ts'

/** As many as a schedule may wait for before it pauses itself. */
const KEPT_ENDS = 20

/** Keeps with a schedule which of its runs are unfinished and how the last ones ended. Both are the same in whatever order runs end. */
export function noteRunOfSchedule(rows: Rows, run: Readonly<RunRow>, eventId: string): void {
  const { trigger_source_ref: source } = run
  if (source.type !== 'schedule') return
  const { run_id, run_key, requested_at, state } = run
  const schedule = editScheduleState(rows, source.schedule_id, eventId)
  const others = schedule.open_runs.filter((open) => open !== run_id)
  if (!isRunOver(state)) {
    schedule.open_runs = [...others, run_id].sort()
    return
  }
  schedule.open_runs = others
  keepEnds(schedule, [...schedule.recent_runs, { run_id, run_key, requested_at, state }])
}

/** Counts the run of a tick towards the failures in a row. Ticks and resumptions follow the order of the ledger, and so does this list. */
export function countRun(schedule: ScheduleStateRow, runKey: string): void {
  const counted = schedule.counted_runs ?? []
  if (counted.includes(runKey)) return
  schedule.counted_runs = [...counted, runKey]
  if (schedule.recent_runs.length > KEPT_ENDS) keepEnds(schedule, schedule.recent_runs)
}

/** Keeps the ends that count, and those of the newest runs by the clock, of which the last is shown. */
function keepEnds(schedule: ScheduleStateRow, ends: readonly EndedRun[]): void {
  const sorted = ends.toSorted((a, b) => a.requested_at - b.requested_at || (a.run_id < b.run_id ? -1 : 1))
  const ended = new Set(sorted.map(({ run_key }) => run_key))
  // Those that have not ended count until they have, however many there are; of the others the last ones.
  const over = (schedule.counted_runs ?? []).filter((key) => ended.has(key))
  const past = new Set(over.slice(0, Math.max(0, over.length - KEPT_ENDS)))
  if (past.size > 0) schedule.counted_runs = (schedule.counted_runs ?? []).filter((key) => !past.has(key))
  const counted = new Set(schedule.counted_runs)
  const newest = sorted.length - KEPT_ENDS
  schedule.recent_runs = sorted.filter(
    ({ run_key }, index) => index >= newest || (run_key !== undefined && counted.has(run_key)),
  )
}
