import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored, waitFor } from '../../model/event.ts'
import { runSubject, taskSubject } from '../subjects.ts'
import { depSatisfaction } from '../tasks/dep-satisfaction.table.ts'
import { isTaskOver, tasks } from '../tasks/tasks.table.ts'
import { clearTaskTimers } from '../timers/timers.table.ts'
import { editKnown } from '../typed-rows.ts'
import { countTaskEnd, endRunIfDone, liveRun, touchRun } from './run-progress.ts'

export const RunCancelRequested = defineEvent({
  type: 'RunCancelRequested',
  version: 1,
  doc: 'A user cancelled a run: no further task starts, and running attempts are asked to stop.',
  payload: z.object({ run_id: id, requested_by: id, reason: z.string().max(4_096).nullish() }),
  idempotencyKey: (cancel) => `cancel:${cancel.run_id}`,
  dedup: 'structure',
  about: (cancel) => ({ owner: 'runs', id: cancel.run_id }),
  ordered: [
    {
      with: ['*'],
      when: (mine, other) => mine.run_id === other.run_id,
      why: 'A cancellation separates tasks that have started, which may still finish, from tasks that never will.',
    },
  ],
  fold({ event, at, payload: cancel, rows, wake }) {
    const known = liveRun(rows, cancel.run_id)
    if (known === 'unknown') return waitFor(runSubject(cancel.run_id))
    if (known === 'over') return ignored('run_over')
    if (known.cancel_requested_at !== null) return duplicate

    const run = touchRun(rows, cancel.run_id, event.event_id)
    run.cancel_requested_at = at
    run.cancel_requested_by = cancel.requested_by
    run.cancel_reason = cancel.reason ?? null
    for (const { task_key, state } of [...rows.hot(tasks).under(run.run_id)]) {
      // A worker has it: it is asked to stop and its own report ends it.
      if (isTaskOver(state) || state === 'DISPATCHED' || state === 'RUNNING') continue
      const task = editKnown(rows.hot(tasks), run.run_id, task_key)
      if (state === 'BLOCKED' || state === 'PLANNED') task.ready_at = null
      task.state = 'CANCELLED'
      task.finished_at = at
      task.retry_not_before = null
      task.cause_event_id = event.event_id
      task.row_version = event.event_id
      clearTaskTimers(rows, task)
      countTaskEnd(run, 'CANCELLED')
      for (const { downstream_task_key } of rows.hot(depSatisfaction).under(run.run_id, task_key)) {
        const edge = rows.hot(depSatisfaction).edit(run.run_id, task_key, downstream_task_key)
        if (edge === undefined) continue
        edge.resolution = 'CANCELLED'
        edge.satisfied_at = at
        edge.row_version = event.event_id
      }
      wake(taskSubject(run.run_id, task_key))
    }
    endRunIfDone(rows, run, at, wake)
    return applied
  },
})
