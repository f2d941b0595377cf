import { pools } from '../../../domain/assets/pools.table.ts'
import { runInTheWay } from '../../../domain/dispatch/overlap.ts'
import { queueOf } from '../../../domain/dispatch/queue.ts'
import { isRunOver, runs } from '../../../domain/runs/runs.table.ts'
import { runSubject } from '../../../domain/subjects.ts'
import { depSatisfaction } from '../../../domain/tasks/dep-satisfaction.table.ts'
import { taskAttempts } from '../../../domain/tasks/task-attempts.table.ts'
import { type TaskRow, tasks } from '../../../domain/tasks/tasks.table.ts'
import { timerSlot, timers } from '../../../domain/timers/timers.table.ts'
import { isoOrNull } from '../../../domain/why/iso.ts'
import type { Waiting } from '../../../domain/why/why-run.ts'
import type { Rows } from '../../../model/rows.ts'

/** What the tasks of a run wait for, from the rows of unfinished work. */
export function waitingIn(rows: Rows, runId: string): Waiting {
  const taskOf = (key: string): Readonly<TaskRow> | undefined => rows.hot(tasks).get(runId, key)
  const run = rows.hot(runs).get(runId)
  let counted: Busy | undefined
  const busy = (): Busy => {
    counted ??= busyIn(rows)
    return counted
  }
  return {
    after: (run?.after_run_ids ?? []).filter((id) => {
      const earlier = rows.hot(runs).get(id)
      return earlier !== undefined && !isRunOver(earlier.state)
    }),
    attemptOf: (key) => {
      const attempt = rows.hot(taskAttempts).get(runId, key, taskOf(key)?.attempt ?? 0)
      return attempt && { since: isoOrNull(attempt.started_at ?? attempt.dispatched_at), worker_id: attempt.worker_id }
    },
    queueOf: (key) => {
      const task = taskOf(key)
      const queue = task === undefined ? '' : queueOf(task)
      return { queue, busy: busy().queues.get(queue) ?? 0 }
    },
    pool: (name) => {
      const slots = rows.hot(pools).get(name)?.slots
      return slots == null ? undefined : { slots, busy: busy().pools.get(name) ?? 0 }
    },
    overlapOf: (key) => {
      const task = taskOf(key)
      return task === undefined ? undefined : runInTheWay(task, rows.hot(tasks).all())
    },
    retryAt: (key) => {
      const attempt = taskOf(key)?.attempt
      const slot = timerSlot({ timer_type: 'RETRY', task_key: key, attempt })
      return isoOrNull(rows.hot(timers).get(runSubject(runId), slot)?.fire_at)
    },
    upstreamOf: (key) => {
      const above: { task_key: string; state: TaskRow['state'] }[] = []
      for (const edge of rows.hot(depSatisfaction).under(runId)) {
        if (edge.downstream_task_key !== key || edge.satisfied) continue
        const { upstream_task_key: task_key } = edge
        above.push({ task_key, state: taskOf(task_key)?.state ?? 'PLANNED' })
      }
      return above
    },
  }
}

/** How many tasks are with workers, by queue and by pool. */
interface Busy {
  readonly queues: ReadonlyMap<string, number>
  readonly pools: ReadonlyMap<string, number>
}

function busyIn(rows: Rows): Busy {
  const queues = new Map<string, number>()
  const inPools = new Map<string, number>()
  for (const task of rows.hot(tasks).all()) {
    if (task.state !== 'DISPATCHED' && task.state !== 'RUNNING') continue
    const queue = queueOf(task)
    queues.set(queue, (queues.get(queue) ?? 0) + 1)
    if (task.pool !== null) inPools.set(task.pool, (inPools.get(task.pool) ?? 0) + 1)
  }
  return { queues, pools: inPools }
}
