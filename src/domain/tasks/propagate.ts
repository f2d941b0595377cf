import type { Rows } from '../../model/rows.ts'
import { countTaskEnd } from '../runs/run-progress.ts'
import type { RunRow } from '../runs/runs.table.ts'
import { taskSubject } from '../subjects.ts'
import { clearTaskTimers } from '../timers/timers.table.ts'
import { editKnown, raiseVersion } from '../typed-rows.ts'
import { depSatisfaction, type EdgeResolution } from './dep-satisfaction.table.ts'
import { isTaskOver, type TaskRow, type TaskState, tasks } from './tasks.table.ts'

type Wake = (subject: string) => void

/** The upstream task succeeded: its edges are satisfied, and the tasks that waited only for it are ready. */
export function satisfyDownstream(rows: Rows, upstream: Readonly<TaskRow>, at: number, eventId: string, wake: Wake): void {
  const edges = rows.hot(depSatisfaction)
  for (const { downstream_task_key: downstreamKey } of edges.under(upstream.run_id, upstream.task_key)) {
    const edge = edges.edit(upstream.run_id, upstream.task_key, downstreamKey)
    if (edge === undefined || edge.satisfied) continue
    edge.satisfied = true
    edge.resolution = 'SUCCESS'
    edge.satisfied_at = at
    edge.satisfying_attempt = upstream.attempt
    edge.row_version = eventId

    const task = rows.hot(tasks).edit(upstream.run_id, downstreamKey)
    if (task === undefined) continue
    task.deps_satisfied_count += 1
    // A task that another upstream already ended keeps the cause it has.
    if (task.state !== 'BLOCKED') continue
    // The latest of the upstream ends, in whatever order they are folded.
    task.ready_at = Math.max(task.ready_at ?? 0, at)
    raiseVersion(task, eventId)
    if (task.deps_satisfied_count === task.deps_total) {
      task.state = 'READY'
      wake(taskSubject(task.run_id, task.task_key))
    }
  }
}

const resolutionOf: Partial<Record<TaskState, EdgeResolution>> = {
  FAILED: 'FAILED',
  SKIPPED: 'SKIPPED',
  CANCELLED: 'CANCELLED',
}

/**
 * The task ended without success, so nothing downstream of it can start: everything below is skipped, or cancelled
 * when the task was. Of several failures above a task, the one with the smallest event id is its cause, so that the
 * attribution is the same in whatever order they were folded.
 */
export function endDownstream(rows: Rows, run: RunRow, first: TaskRow, wake: Wake): void {
  const edges = rows.hot(depSatisfaction)
  const pending: TaskRow[] = [first]
  for (let upstream = pending.pop(); upstream !== undefined; upstream = pending.pop()) {
    const resolution = resolutionOf[upstream.state] ?? null
    for (const { downstream_task_key: downstreamKey } of edges.under(run.run_id, upstream.task_key)) {
      const edge = edges.edit(run.run_id, upstream.task_key, downstreamKey)
      if (edge !== undefined) {
        edge.resolution = resolution
        edge.satisfied_at = upstream.finished_at
        edge.row_version = upstream.row_version
      }
      const task = rows.hot(tasks).get(run.run_id, downstreamKey)
      if (task === undefined) continue
      if (isTaskOver(task.state)) {
        // Ended by an earlier failure: only the attribution may still change, never the state.
        if (task.cause_event_id === null || (upstream.cause_event_id ?? '') >= task.cause_event_id) continue
      }
      const ended = editKnown(rows.hot(tasks), run.run_id, downstreamKey)
      if (!isTaskOver(ended.state)) {
        ended.state = resolution === 'CANCELLED' ? 'CANCELLED' : 'SKIPPED'
        clearTaskTimers(rows, ended)
        countTaskEnd(run, ended.state)
      }
      ended.ready_at = null
      ended.finished_at = upstream.finished_at
      ended.cause_task_key = upstream.cause_task_key ?? upstream.task_key
      ended.cause_event_id = upstream.cause_event_id
      ended.row_version = upstream.row_version
      wake(taskSubject(ended.run_id, ended.task_key))
      pending.push(ended)
    }
  }
}
