import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored, waitFor } from '../../model/event.ts'
import { orderOf } from '../partitions/order.ts'
import { liveRun, touchRun } from '../runs/run-progress.ts'
import { runSubject, taskSubject } from '../subjects.ts'
import { taskAttempts } from '../tasks/task-attempts.table.ts'
import { isTaskOver, taskRank, tasks } from '../tasks/tasks.table.ts'
import { editKnown } from '../typed-rows.ts'
import { attemptId, dispatchId, queueSafeId } from './dispatch-ids.ts'
import { dispatchOutbox } from './dispatch-outbox.table.ts'

export const DispatchRequested = defineEvent({
  type: 'DispatchRequested',
  version: 1,
  doc: 'A ready task is to be handed to a worker. Takes effect once the task is ready for that attempt.',
  payload: z.object({
    run_id: id,
    task_key: id,
    attempt: z.number().int().min(1),
    attempt_id: id,
    worker_queue: id.default('default'),
  }),
  idempotencyKey: (dispatch) => dispatchId(dispatch.run_id, dispatch.task_key, dispatch.attempt),
  dedup: 'structure',
  about: (dispatch) => ({ owner: 'runs', id: dispatch.run_id }),
  fold({ event, at, payload: dispatch, rows, wake }) {
    const { run_id, task_key, attempt } = dispatch
    const live = liveRun(rows, run_id)
    if (live === 'unknown') return waitFor(runSubject(run_id))
    if (live === 'over') return ignored('run_over')
    const task = rows.hot(tasks).get(run_id, task_key)
    if (task === undefined || task.state === 'PLANNED') return waitFor(runSubject(run_id))
    if (isTaskOver(task.state)) return ignored('task_over')
    if (attempt < task.attempt || (attempt === task.attempt && taskRank[task.state] > taskRank.READY)) return duplicate
    if (dispatch.attempt_id !== attemptId(run_id, task_key, attempt)) return ignored('wrong_attempt_id')
    // Dispatching before every edge is SUCCESS, or before the attempt before it ended, would run a task too early.
    if (attempt > task.attempt || task.state !== 'READY') return waitFor(taskSubject(run_id, task_key))

    const dispatched = editKnown(rows.hot(tasks), run_id, task_key)
    dispatched.state = 'DISPATCHED'
    dispatched.attempt_id = dispatch.attempt_id
    dispatched.row_version = event.event_id
    rows.hot(taskAttempts).insert({
      run_id,
      task_key,
      attempt,
      attempt_id: dispatch.attempt_id,
      state: 'DISPATCHED',
      worker_id: null,
      dispatched_at: at,
      dispatched_order: orderOf(event, at),
      started_at: null,
      last_heartbeat_at: null,
      finished_at: null,
      outcome: null,
      error_category: null,
      error_message: null,
      error_detail: null,
      retryable: null,
      materialization_id: null,
      output: null,
      metrics: null,
      code_version: null,
      row_version: event.event_id,
    })
    const readableId = dispatchId(run_id, task_key, attempt)
    rows.hot(dispatchOutbox).insert({
      run_id,
      task_key,
      attempt,
      dispatch_id: readableId,
      cloud_task_id: queueSafeId('d', readableId),
      attempt_id: dispatch.attempt_id,
      status: 'PENDING',
      worker_queue: dispatch.worker_queue,
      offer: null,
      created_at: at,
      row_version: event.event_id,
    })
    const run = touchRun(rows, run_id, event.event_id)
    run.started_at = Math.min(run.started_at ?? at, at)
    if (run.state === 'PENDING') {
      run.state = 'RUNNING'
    }
    wake(taskSubject(run_id, task_key))
    return applied
  },
})
