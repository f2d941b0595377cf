import { isRunOver, runs } from '../../../domain/runs/runs.table.ts'
import { taskAttempts } from '../../../domain/tasks/task-attempts.table.ts'
import { tasks } from '../../../domain/tasks/tasks.table.ts'
import type { Rows } from '../../../model/rows.ts'

/** What unfinished work may still read. */
export interface ValuesInUse {
  /**
   * When the first of the attempts was dispatched that are not over, in the order of the record; infinity without any. An attempt has looked up its inputs after that:
   * whatever was replaced before, it does not read.
   */
  readonly since: number
  /** Materializations of unfinished runs. The tasks of a run read what the run itself made, also if another run has made a newer one. */
  readonly made: ReadonlySet<string>
}

export function valuesInUse(rows: Rows): ValuesInUse {
  let since = Number.POSITIVE_INFINITY
  const made = new Set<string>()
  for (const run of rows.hot(runs).all()) {
    if (isRunOver(run.state)) continue
    for (const { materialization_id } of rows.hot(tasks).under(run.run_id)) if (materialization_id) made.add(materialization_id)
  }
  for (const { outcome, dispatched_at, dispatched_order } of rows.hot(taskAttempts).all())
    if (outcome === null) since = Math.min(since, dispatched_order ?? dispatched_at)
  return { since, made }
}
