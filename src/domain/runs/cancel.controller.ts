import { SECOND_MS } from '../../lib/time.ts'
import type { Controller } from '../../model/controller.ts'
import type { NewEvent } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { dispatchOutbox } from '../dispatch/dispatch-outbox.table.ts'
import { LOCAL_QUEUE } from '../dispatch/queue.ts'
import { type AttemptRow, givenUp } from '../tasks/given-up.ts'
import { taskAttempts } from '../tasks/task-attempts.table.ts'
import { isRowOf } from '../typed-rows.ts'
import { isRunOver, type RunRow, runs } from './runs.table.ts'

/** A worker that stops at the last moment still needs time to report it. */
const REPORT_MS = 2 * SECOND_MS

/**
 * Ends a cancelled run in bounded time, whatever remote workers do. The alarm needs no row of its own: the row of the run records
 * when its cancellation was requested.
 */
export function cancelController(graceMs: () => number): Controller {
  const due = new Map<Readonly<RunRow>, number>()
  return {
    name: 'cancel',
    doc: 'Ends what other workers do for a cancelled run when they do not end it themselves.',
    watches: [runs],
    actsOnAbsence: true,
    observe: (table, run) => {
      if (!isRowOf(runs, table, run)) return
      if (run.cancel_requested_at === null || isRunOver(run.state)) due.delete(run)
      else if (!due.has(run)) due.set(run, run.cancel_requested_at + graceMs() + REPORT_MS)
    },
    decide(observed): readonly NewEvent[] {
      const { rows, now } = observed
      const events: NewEvent[] = []
      for (const [run, at] of due) {
        if (now < at) continue
        due.delete(run)
        const error_message = 'the run was cancelled, and its worker did not stop in time'
        for (const attempt of remoteAttempts(rows, run))
          events.push(givenUp(attempt, { outcome: 'CANCELLED', error_message, because: run }, observed))
      }
      return events
    },
    wakeAt: () => {
      let next: number | undefined
      for (const at of due.values()) if (next === undefined || at < next) next = at
      return next
    },
  }
}

function* remoteAttempts(rows: Rows, { run_id }: Readonly<RunRow>): Iterable<Readonly<AttemptRow>> {
  for (const attempt of rows.hot(taskAttempts).under(run_id)) {
    if (attempt.outcome !== null) continue
    const dispatch = rows.hot(dispatchOutbox).get(run_id, attempt.task_key, attempt.attempt)
    if (dispatch !== undefined && dispatch.worker_queue !== LOCAL_QUEUE) yield attempt
  }
}
