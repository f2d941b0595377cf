import type { EndedRun, ScheduleStateRow } from './schedule-state.table.ts'

/** The latest runs of a schedule if they failed, oldest first, since it was last resumed. A cancelled run says nothing. */
export function failuresInARow(state: Readonly<ScheduleStateRow>): readonly EndedRun[] {
  const since = state.status_changed_at ?? 0
  const ended = state.recent_runs.filter((run) => run.state !== 'CANCELLED' && run.requested_at > since)
  const lastGood = ended.findLastIndex((run) => run.state !== 'FAILED')
  return ended.slice(lastGood + 1)
}
