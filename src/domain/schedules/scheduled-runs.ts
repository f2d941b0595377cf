import type { Rows } from '../../model/rows.ts'
import { isRunOver, type RunRow } from '../runs/runs.table.ts'
import { editScheduleState } from './regime.ts'

/** As many as a schedule may wait for before it pauses itself. */
const KEPT_ENDS = 20

/** Keeps with a schedule which of its runs are unfinished and how the last ones ended. Both are the same in whatever order runs end. */
export function noteRunOfSchedule(rows: Rows, run: Readonly<RunRow>, eventId: string): void {
  const { trigger_source_ref: source } = run
  if (source.type !== 'schedule') return
  const { run_id, requested_at, state } = run
  const schedule = editScheduleState(rows, source.schedule_id, eventId)
  const others = schedule.open_runs.filter((open) => open !== run_id)
  if (!isRunOver(state)) {
    schedule.open_runs = [...others, run_id].sort()
    return
  }
  schedule.open_runs = others
  const ended = [...schedule.recent_runs, { run_id, requested_at, state }]
  ended.sort((a, b) => a.requested_at - b.requested_at || (a.run_id < b.run_id ? -1 : 1))
  schedule.recent_runs = ended.slice(-KEPT_ENDS)
}
