import type { RetryPolicy } from '../../contract/project-manifest.ts'
import { sha256Bytes } from '../../lib/hash.ts'
import { toIso } from '../../lib/time.ts'
import type { Controller } from '../../model/controller.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import { becauseOf } from '../runs/event-context.ts'
import { runSubject } from '../subjects.ts'
import { taskAttempts } from '../tasks/task-attempts.table.ts'
import { LOST, type TaskRow, tasks } from '../tasks/tasks.table.ts'
import { isRowOf } from '../typed-rows.ts'
import { TimerRequested } from './timer-requested.event.ts'
import { timerSlot, timers } from './timers.table.ts'

const defaultPolicy: RetryPolicy = { max_attempts: 1, backoff: 'exponential', initial_ms: 1_000, max_ms: 300_000, jitter: true }

/** The time to wait after an attempt failed. Every process computes the same for the same attempt. */
export function retryDelayMs(policy: RetryPolicy, attemptId: string, failures: number): number {
  const full = policy.backoff === 'fixed' ? policy.initial_ms : policy.initial_ms * 2 ** Math.min(failures - 1, 30)
  const delay = Math.min(full, Math.max(policy.max_ms, policy.initial_ms))
  if (!policy.jitter) return Math.round(delay)
  // Tasks that failed together must not come back together.
  const [dice = 0] = sha256Bytes(`jitter:${attemptId}`)
  return Math.round(delay * (1 - dice / 512))
}

/** Sets the alarm for the next attempt of a task that failed and may be tried again. */
export function retryController(): Controller {
  const waiting = new Set<Readonly<TaskRow>>()
  return {
    name: 'retry',
    doc: 'Sets the alarm for the next attempt of a task that failed.',
    watches: [tasks],
    observe: (table, row) => {
      if (isRowOf(tasks, table, row) && row.state === 'RETRY_WAIT') waiting.add(row)
    },
    decide({ rows }): readonly NewEvent[] {
      const events: NewEvent[] = []
      for (const task of waiting) {
        if (task.state !== 'RETRY_WAIT') continue
        const { run_id, task_key, attempt } = task
        const timer = { timer_type: 'RETRY', run_id, task_key, attempt } as const
        if (rows.hot(timers).get(runSubject(run_id), timerSlot(timer)) !== undefined) continue
        const failed = rows.hot(taskAttempts).get(run_id, task_key, attempt)
        const failedAt = failed?.finished_at ?? 0
        const policy = (task.spec as { retry?: RetryPolicy } | null)?.retry ?? defaultPolicy
        // A lost attempt did not fail by itself, so its retry need not wait.
        const delay =
          failed?.error_category === LOST
            ? 0
            : retryDelayMs(policy, failed?.attempt_id ?? '', attempt - (task.lost_attempts ?? 0))
        const fireAt = Math.max(failedAt + delay, task.retry_not_before ?? 0)
        events.push(newEvent(TimerRequested, { ...timer, fire_at: toIso(fireAt) }, becauseOf(rows, task)))
      }
      waiting.clear()
      return events
    },
  }
}
