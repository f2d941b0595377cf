import { assert } from '../../lib/assert.ts'
import type { Rows } from '../../model/rows.ts'
import { endChunkOfRun } from '../backfills/chunk-outcome.ts'
import { noteRunOfSchedule } from '../schedules/scheduled-runs.ts'
import { noteRunEnd } from '../sensors/happenings/happenings.ts'
import { runSubject } from '../subjects.ts'
import { type TaskState, tasks } from '../tasks/tasks.table.ts'
import { timers } from '../timers/timers.table.ts'
import { editKnown, raiseVersion } from '../typed-rows.ts'
import { forgetValues } from './keep-values.ts'
import { isRunOver, type RunRow, runs } from './runs.table.ts'

type TaskCounter = 'tasks_succeeded' | 'tasks_failed' | 'tasks_skipped' | 'tasks_cancelled'

const counterOf: Partial<Record<TaskState, TaskCounter>> = {
  SUCCEEDED: 'tasks_succeeded',
  FAILED: 'tasks_failed',
  SKIPPED: 'tasks_skipped',
  CANCELLED: 'tasks_cancelled',
}

/** A run that is known, for changing, with its version moved to the latest event that had a part in it. */
export function touchRun(rows: Rows, runId: string, eventId: string): RunRow {
  const run = editKnown(rows.hot(runs), runId)
  raiseVersion(run, eventId)
  return run
}

export function countTaskEnd(run: RunRow, state: TaskState): void {
  const counter = counterOf[state]
  assert(counter !== undefined, `${state} is not a final state of a task`)
  run[counter] += 1
}

const tasksOver = (run: RunRow): number => run.tasks_succeeded + run.tasks_failed + run.tasks_skipped + run.tasks_cancelled

const isPlanned = (run: RunRow): boolean => run.plan_parts > 0 && run.plan_parts_seen === run.plan_parts

/** Ends the run when nothing of it is left to do. */
export function endRunIfDone(rows: Rows, run: RunRow, at: number, wake: (subject: string) => void): void {
  const done = isPlanned(run) ? tasksOver(run) === run.tasks_total : run.cancel_requested_at !== null
  if (done) {
    run.state = endState(run)
    // The latest end of a task, whichever was folded last.
    run.finished_at = at
    for (const task of rows.hot(tasks).under(run.run_id)) run.finished_at = Math.max(run.finished_at, task.finished_at ?? 0)
    // A run that is over needs no alarm.
    for (const timer of [...rows.hot(timers).under(runSubject(run.run_id))]) rows.hot(timers).remove(timer.subject, timer.slot)
    forgetValues(rows, run.run_id)
    noteRunOfSchedule(rows, run, run.row_version)
    noteRunEnd(rows, run)
    endChunkOfRun(rows, run, wake)
    wake(runSubject(run.run_id))
  }
}

function endState(run: RunRow): RunRow['state'] {
  if (run.error !== null) return 'FAILED'
  const cancelled = run.tasks_cancelled > 0 || !isPlanned(run)
  if (run.cancel_requested_at !== null && cancelled) return 'CANCELLED'
  if (run.tasks_failed > 0) return 'FAILED'
  return cancelled ? 'CANCELLED' : 'SUCCEEDED'
}

/** The run if facts about it can still matter. */
export function liveRun(rows: Rows, runId: string): Readonly<RunRow> | 'unknown' | 'over' {
  const run = rows.hot(runs).get(runId)
  if (run === undefined) return 'unknown'
  return isRunOver(run.state) ? 'over' : run
}
