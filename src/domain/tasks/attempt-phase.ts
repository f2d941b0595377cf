import { ignored, type Verdict, waitFor } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { liveRun } from '../runs/run-progress.ts'
import { runSubject, taskSubject } from '../subjects.ts'
import { isTaskOver, type TaskRow, taskRank, tasks } from './tasks.table.ts'

export interface AttemptFact {
  readonly run_id: string
  readonly task_key: string
  readonly attempt: number
  readonly attempt_id?: string
}

/**
 * Decides what a fact about an attempt meets: the attempt in flight (the task is returned), one not dispatched yet
 * (the fact waits), or one that is over (the fact changes nothing). Every fold of a fact about an attempt checks this first.
 */
export function attemptInFlight(rows: Rows, fact: AttemptFact): Readonly<TaskRow> | Verdict {
  const run = liveRun(rows, fact.run_id)
  if (run === 'unknown') return waitFor(runSubject(fact.run_id))
  if (run === 'over') return ignored('run_over')
  const task = rows.hot(tasks).get(fact.run_id, fact.task_key)
  if (task === undefined) {
    const planned = run.plan_parts > 0 && run.plan_parts_seen === run.plan_parts
    return planned ? ignored('no_such_task') : waitFor(runSubject(fact.run_id))
  }
  if (isTaskOver(task.state)) return ignored('task_over')
  if (fact.attempt < task.attempt) return ignored('stale_attempt')
  if (fact.attempt > task.attempt || taskRank[task.state] < taskRank.DISPATCHED) {
    return task.state === 'PLANNED' ? waitFor(runSubject(fact.run_id)) : waitFor(taskSubject(fact.run_id, fact.task_key))
  }
  if (task.state === 'RETRY_WAIT') return ignored('stale_attempt')
  if (fact.attempt_id !== undefined && fact.attempt_id !== task.attempt_id) return ignored('wrong_attempt_id')
  return task
}
