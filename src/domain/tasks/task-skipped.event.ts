import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, ignored, waitFor } from '../../model/event.ts'
import { countTaskEnd, endRunIfDone, liveRun, touchRun } from '../runs/run-progress.ts'
import { runSubject, taskSubject } from '../subjects.ts'
import { clearTaskTimers } from '../timers/timers.table.ts'
import { editKnown } from '../typed-rows.ts'
import { endDownstream } from './propagate.ts'
import { isTaskOver, taskRank, tasks } from './tasks.table.ts'

export const TaskSkipped = defineEvent({
  type: 'TaskSkipped',
  version: 1,
  doc: 'A ready task is skipped: another run is materializing its partition, and its asset has overlap: skip.',
  payload: z.object({
    run_id: id,
    task_key: id,
    /** The run that is making the partition. */
    overlap_run_id: id,
  }),
  idempotencyKey: ({ run_id, task_key }) => `skipped:${run_id}:${task_key}`,
  dedup: 'structure',
  about: (skip) => ({ owner: 'runs', id: skip.run_id }),
  ordered: [
    {
      with: ['DispatchRequested', 'TaskSkipped'],
      when: (mine, other) => mine.run_id === other.run_id && mine.task_key === other.task_key,
      why: 'A task that was dispatched is not skipped any more, and one that was skipped is not dispatched.',
    },
  ],
  fold({ event, at, payload: { run_id, task_key, overlap_run_id }, rows, wake }) {
    const live = liveRun(rows, run_id)
    if (live === 'unknown') return waitFor(runSubject(run_id))
    if (live === 'over') return ignored('run_over')
    const known = rows.hot(tasks).get(run_id, task_key)
    if (known === undefined || known.state === 'PLANNED') return waitFor(runSubject(run_id))
    if (isTaskOver(known.state)) return ignored('task_over')
    if (known.attempt > 1 || taskRank[known.state] > taskRank.READY) return ignored('task_begun')
    if (known.state !== 'READY') return waitFor(taskSubject(run_id, task_key))

    const run = touchRun(rows, run_id, event.event_id)
    const task = editKnown(rows.hot(tasks), run_id, task_key)
    task.state = 'SKIPPED'
    task.overlap_run_id = overlap_run_id
    task.finished_at = at
    task.cause_event_id = event.event_id
    task.row_version = event.event_id
    clearTaskTimers(rows, task)
    countTaskEnd(run, 'SKIPPED')
    endDownstream(rows, run, task, wake)
    endRunIfDone(rows, run, at, wake)
    wake(taskSubject(run_id, task_key))
    return applied
  },
})
