import { storedIn } from '../../contract/stored-output.ts'
import type { Rows } from '../../model/rows.ts'
import { depSatisfaction } from '../tasks/dep-satisfaction.table.ts'
import type { TaskRow } from '../tasks/tasks.table.ts'
import { runValues } from './run-values.table.ts'

/** Keeps a small value at hand for the tasks of the run that wait for it. Most runs have one task, and nobody waits. */
export function keepForRun(rows: Rows, { run_id, task_key }: Readonly<TaskRow>, output: unknown, eventId: string): void {
  const value = storedIn(output)?.value
  if (value == null) return
  for (const _ of rows.hot(depSatisfaction).under(run_id, task_key)) {
    rows.hot(runValues).insert({ run_id, task_key, value, row_version: eventId })
    return
  }
}

/** Nobody in the run needs them any more. */
export function forgetValues(rows: Rows, runId: string): void {
  for (const { task_key } of [...rows.hot(runValues).under(runId)]) rows.hot(runValues).remove(runId, task_key)
}
