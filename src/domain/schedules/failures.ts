import type { EndedRun, ScheduleStateRow } from './schedule-state.table.ts'

/**
 * The latest runs of a schedule if they failed, oldest first, since it was last resumed. A cancelled run says nothing. Which are the latest
 * follows from the ledger and not from the clock: failures that a clock recorded ahead of time would pause the schedule for ever.
 */
export function failuresInARow({ counted_runs, recent_runs }: Readonly<ScheduleStateRow>): readonly EndedRun[] {
  const ends = new Map(recent_runs.map((run) => [run.run_key, run]))
  const ended = (counted_runs ?? []).flatMap((key) => ends.get(key) ?? []).filter(({ state }) => state !== 'CANCELLED')
  const lastGood = ended.findLastIndex((run) => run.state !== 'FAILED')
  return ended.slice(lastGood + 1)
}
