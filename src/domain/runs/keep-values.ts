import { recordedIn } from '../../contract/stored-output.ts'
import type { Rows } from '../../model/rows.ts'
import { depSatisfaction } from '../tasks/dep-satisfaction.table.ts'
import type { TaskRow } from '../tasks/tasks.table.ts'
import { runValues } from './run-values.table.ts'

/**
 * Keeps a small value at hand for the tasks of the run that wait for it. Most runs have one task, and nobody waits. One that was forgotten
 * since has its row too: a replay makes the same rows of the event as before, and nobody waits for that value any more.
 */
export function keepForRun(rows: Rows, { run_id, task_key }: Readonly<TaskRow>, output: unknown, eventId: string): void {
  const stored = recordedIn(output)
  if (stored === undefined || stored.path !== null) return
  for (const _ of rows.hot(depSatisfaction).under(run_id, task_key)) {
    rows.hot(runValues).insert({ run_id, task_key, value: stored.value ?? '', row_version: eventId })
    return
  }
}

/** Nobody in the run needs them any more. */
export function forgetValues(rows: Rows, runId: string): void {
  for (const { task_key } of [...rows.hot(runValues).under(runId)]) rows.hot(runValues).remove(runId, task_key)
}
