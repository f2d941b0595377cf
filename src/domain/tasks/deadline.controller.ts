import { SECOND_MS, toIso } from '../../lib/time.ts'
import type { Controller } from '../../model/controller.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { becauseOf } from '../runs/event-context.ts'
import { runSubject } from '../subjects.ts'
import type { OnAlarm } from '../timers/alarm.controller.ts'
import { TimerRequested } from '../timers/timer-requested.event.ts'
import { timerSlot, timers } from '../timers/timers.table.ts'
import { isRowOf } from '../typed-rows.ts'
import { type AttemptRow, givenUp } from './given-up.ts'
import { taskAttempts } from './task-attempts.table.ts'
import { type TaskRow, tasks } from './tasks.table.ts'
import { runsRemotely } from './worker-id.ts'

/** After the deadline the answer to the next heartbeat tells the worker to stop; after this grace the attempt is given up. */
const GRACE_MS = 30 * SECOND_MS

/** The deadline of an attempt; undefined without a timeout. */
export function deadlineOf({ timeout_sec }: Readonly<TaskRow>, { started_at }: Readonly<AttemptRow>): number | undefined {
  return timeout_sec === null || started_at === null ? undefined : started_at + timeout_sec * SECOND_MS
}

/** Sets the alarm for when an attempt on a remote worker must have ended. The process pool kills local workers in time. */
export function deadlineController(): Controller {
  const begun = new Set<Readonly<AttemptRow>>()
  return {
    name: 'deadline',
    doc: 'Bounds the time of attempts on remote workers.',
    watches: [taskAttempts],
    observe: (table, row) => {
      if (isRowOf(taskAttempts, table, row) && runsRemotely(row)) begun.add(row)
    },
    decide({ rows }): readonly NewEvent[] {
      const events: NewEvent[] = []
      for (const attempt of begun) {
        if (!runsRemotely(attempt)) continue
        const { run_id, task_key } = attempt
        const task = rows.hot(tasks).get(run_id, task_key)
        const deadline = task && deadlineOf(task, attempt)
        if (deadline === undefined) continue
        // The slot outlives attempts: an alarm for an earlier one may still be there.
        const timer = rows.hot(timers).get(runSubject(run_id), timerSlot({ timer_type: 'SLA_CHECK', task_key }))
        if (timer === undefined || timer.fire_at < deadline + GRACE_MS) events.push(checkAt(rows, attempt, deadline + GRACE_MS))
      }
      begun.clear()
      return events
    },
  }
}

/** The events when the alarm goes off: an attempt that has used up its timeout and its grace has failed. */
export const onDeadline: OnAlarm = ({ run_id, task_key, fire_at }, observed) => {
  const { rows, now } = observed
  const task = rows.hot(tasks).get(run_id ?? '', task_key ?? '')
  const attempt = task && rows.hot(taskAttempts).get(task.run_id, task.task_key, task.attempt)
  if (task === undefined || attempt === undefined || !runsRemotely(attempt)) return []
  const deadline = deadlineOf(task, attempt)
  if (deadline === undefined) return []
  // Its result may have been under way while no process was there to take it.
  const endsAt = now - fire_at > GRACE_MS ? now + GRACE_MS : deadline + GRACE_MS
  if (now < endsAt) return [checkAt(rows, attempt, endsAt)]
  const error_message = `it ran longer than its timeout of ${task.timeout_sec} s and did not stop when asked to`
  return [givenUp(attempt, { outcome: 'FAILED', error_category: 'timeout', error_message }, observed)]
}

function checkAt(rows: Rows, row: Readonly<AttemptRow>, at: number): NewEvent {
  const { run_id, task_key, attempt } = row
  const timer = { timer_type: 'SLA_CHECK', run_id, task_key, attempt, fire_at: toIso(at) } as const
  return newEvent(TimerRequested, timer, becauseOf(rows, row))
}
