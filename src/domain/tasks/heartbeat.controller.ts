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
import { LOST, tasks } from './tasks.table.ts'
import { runsRemotely } from './worker-id.ts'

/** On top of the timeout: a heartbeat may be on its way, and giving up a worker that is alive costs more than waiting. */
const GRACE_MS = 30 * SECOND_MS
/** Alarms of many attempts go off together, and cost one write and not one each. */
const ROUND_MS = 5 * SECOND_MS
/** An alarm that goes off this long after it was due was set by a process that ended, or on a machine that slept. */
const LATE_MS = 30 * SECOND_MS

/** Sets the alarm that watches over an attempt on a remote worker. */
export function heartbeatController(): Controller {
  const begun = new Set<Readonly<AttemptRow>>()
  return {
    name: 'heartbeat',
    doc: 'Watches over attempts on remote workers.',
    watches: [taskAttempts],
    observe: (table, row) => {
      if (isRowOf(taskAttempts, table, row) && runsRemotely(row)) begun.add(row)
    },
    decide({ rows, now }): readonly NewEvent[] {
      const events: NewEvent[] = []
      for (const attempt of begun) {
        if (!runsRemotely(attempt)) continue
        const timer = rows.hot(timers).get(runSubject(attempt.run_id), timerSlot(checkOf(attempt)))
        if (timer?.state === 'SCHEDULED') continue
        events.push(checkAt(rows, attempt, now + patienceWith(rows, attempt)))
      }
      begun.clear()
      return events
    },
  }
}

/**
 * What follows when the alarm goes off: an attempt that was silent for too long is given up, for any other the alarm is set
 * for when it would be. `lastSign` is when this process last received a heartbeat of an attempt, or began to listen.
 */
export const onHeartbeatCheck =
  (lastSign: (attemptId: string) => number): OnAlarm =>
  ({ run_id, task_key, attempt: number, fire_at }, observed) => {
    const { rows, now } = observed
    const attempt = rows.hot(taskAttempts).get(run_id ?? '', task_key ?? '', number ?? 0)
    if (attempt === undefined || !runsRemotely(attempt)) return []
    const patience = patienceWith(rows, attempt)
    const heard = Math.max(attempt.started_at ?? 0, attempt.last_heartbeat_at ?? 0, lastSign(attempt.attempt_id))
    // No process was listening in the meantime, so the worker gets its full time again.
    const silentAt = (now - fire_at > LATE_MS ? now : heard) + patience
    if (now < silentAt) return [checkAt(rows, attempt, silentAt)]
    const error_message = `worker ${attempt.worker_id} sent no heartbeat for ${Math.round((now - heard) / SECOND_MS)} s`
    return [givenUp(attempt, { outcome: 'FAILED', error_category: LOST, error_message }, observed)]
  }

const checkOf = ({ run_id, task_key, attempt }: Readonly<AttemptRow>) =>
  ({ timer_type: 'HEARTBEAT_CHECK', run_id, task_key, attempt }) as const

function checkAt(rows: Rows, attempt: Readonly<AttemptRow>, at: number): NewEvent {
  const fire_at = toIso(Math.ceil(at / ROUND_MS) * ROUND_MS)
  return newEvent(TimerRequested, { ...checkOf(attempt), fire_at }, becauseOf(rows, attempt))
}

function patienceWith(rows: Rows, { run_id, task_key }: Readonly<AttemptRow>): number {
  const timeoutSec = rows.hot(tasks).get(run_id, task_key)?.heartbeat_timeout_sec ?? 0
  return timeoutSec * SECOND_MS + GRACE_MS
}
