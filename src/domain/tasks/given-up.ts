import { toIso } from '../../lib/time.ts'
import type { Observed } from '../../model/controller.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { Row } from '../../model/table.ts'
import { becauseOf } from '../runs/event-context.ts'
import type { TaskOutcome, taskAttempts } from './task-attempts.table.ts'
import { TaskFinished } from './task-finished.event.ts'

export type AttemptRow = Row<typeof taskAttempts>

export interface GivingUp {
  readonly outcome: Extract<TaskOutcome, 'FAILED' | 'CANCELLED'>
  readonly error_category?: string
  readonly error_message: string
  /** The row on which the decision was made, if it is not the attempt itself. */
  readonly because?: { readonly run_id: string; readonly row_version: string }
}

/** The end of an attempt whose worker did not report it. A report that comes later changes nothing. */
export function givenUp(
  attempt: Readonly<AttemptRow>,
  { because = attempt, ...why }: GivingUp,
  { rows, now }: Pick<Observed, 'rows' | 'now'>,
): NewEvent {
  const { run_id, task_key, attempt_id, worker_id, started_at } = attempt
  const ended = {
    run_id,
    task_key,
    attempt: attempt.attempt,
    attempt_id,
    worker_id,
    started_at: started_at === null ? null : toIso(started_at),
    completed_at: toIso(now),
    ...why,
  }
  return newEvent(TaskFinished, ended, becauseOf(rows, because))
}
