import { toIso } from '../../lib/time.ts'
import type { Controller } from '../../model/controller.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { Row } from '../../model/table.ts'
import { taskAttempts } from './task-attempts.table.ts'
import { TaskFinished } from './task-finished.event.ts'
import { LOST } from './tasks.table.ts'

type AttemptRow = Row<typeof taskAttempts>

/** Workers of a process that orchestrates have its name, so that the next one knows whose they were. */
export const localWorkerId = (instance: string): string => `local:${instance}`

/**
 * Local workers live and die with the process that started them. What runs according to the state, on workers of a process
 * that is not this one, is lost: nobody will ever report it, and if somebody did, it would be too late.
 */
export function lostWorkersController(instance: string): Controller {
  const orphans = new Set<Readonly<AttemptRow>>()
  const own = localWorkerId(instance)
  return {
    name: 'lost workers',
    doc: 'Gives up attempts whose workers ended with the process that had started them.',
    watches: [taskAttempts],
    observe: (_, row) => {
      const attempt = row as AttemptRow
      if (attempt.state === 'RUNNING' && attempt.worker_id?.startsWith('local:') && attempt.worker_id !== own)
        orphans.add(attempt)
    },
    decide({ now }): readonly NewEvent[] {
      const events: NewEvent[] = []
      for (const attempt of orphans) {
        if (attempt.state !== 'RUNNING') continue
        const { run_id, task_key, attempt_id, worker_id, started_at } = attempt
        const ended = {
          run_id,
          task_key,
          attempt: attempt.attempt,
          attempt_id,
          outcome: 'FAILED',
          worker_id,
          started_at: started_at === null ? null : toIso(started_at),
          completed_at: toIso(now),
          error_category: LOST,
          error_message: 'the process that ran this attempt ended before it did',
        } as const
        events.push(newEvent(TaskFinished, ended, { correlation_id: run_id }))
      }
      orphans.clear()
      return events
    },
  }
}
