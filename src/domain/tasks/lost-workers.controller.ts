import type { Controller } from '../../model/controller.ts'
import type { NewEvent } from '../../model/event.ts'
import { isRowOf } from '../typed-rows.ts'
import { type AttemptRow, givenUp } from './given-up.ts'
import { taskAttempts } from './task-attempts.table.ts'
import { LOST } from './tasks.table.ts'
import { isLocalWorker, localWorkerId } from './worker-id.ts'

/**
 * Local workers live and die with the process that started them. An attempt that runs, by the state, on a worker of another
 * process is lost: no report of it will come, and a report that came would be too late.
 */
export function lostWorkersController(instance: string): Controller {
  const orphans = new Set<Readonly<AttemptRow>>()
  const own = localWorkerId(instance)
  return {
    name: 'lost workers',
    doc: 'Gives up attempts whose workers ended with the process that had started them.',
    watches: [taskAttempts],
    observe: (table, attempt) => {
      if (!isRowOf(taskAttempts, table, attempt)) return
      const { state, worker_id } = attempt
      if (state === 'RUNNING' && worker_id !== null && isLocalWorker(worker_id) && worker_id !== own) orphans.add(attempt)
    },
    decide(observed): readonly NewEvent[] {
      const events: NewEvent[] = []
      for (const attempt of orphans) {
        if (attempt.state !== 'RUNNING') continue
        const error_message = 'the process that ran this attempt ended before the attempt did'
        events.push(givenUp(attempt, { outcome: 'FAILED', error_category: LOST, error_message }, observed))
      }
      orphans.clear()
      return events
    },
  }
}
