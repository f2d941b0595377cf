import { z } from 'zod'
import { toMs } from '../../lib/time.ts'
import { id, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, isVerdict } from '../../model/event.ts'
import { advanceDispatch } from '../dispatch/acknowledge.ts'
import { editKnown } from '../typed-rows.ts'
import { attemptInFlight } from './attempt-phase.ts'
import { taskAttempts } from './task-attempts.table.ts'
import { tasks } from './tasks.table.ts'

export const TaskStarted = defineEvent({
  type: 'TaskStarted',
  version: 1,
  doc: 'A worker started an attempt.',
  payload: z.object({
    run_id: id,
    task_key: id,
    attempt: z.number().int().min(1),
    attempt_id: id,
    worker_id: id,
    started_at: timestamp,
  }),
  idempotencyKey: (start) => `started:${start.run_id}:${start.task_key}:${start.attempt}`,
  dedup: 'structure',
  about: (start) => ({ owner: 'runs', id: start.run_id }),
  fold({ event, payload: start, rows }) {
    const inFlight = attemptInFlight(rows, start)
    if (isVerdict(inFlight)) return inFlight
    // Queues deliver twice: the first worker to start an attempt has it, the second is refused and stops.
    if (inFlight.state === 'RUNNING') return duplicate
    const task = editKnown(rows.hot(tasks), start.run_id, start.task_key)
    task.state = 'RUNNING'
    task.row_version = event.event_id
    const attempt = rows.hot(taskAttempts).edit(start.run_id, start.task_key, start.attempt)
    if (attempt !== undefined) {
      attempt.state = 'RUNNING'
      attempt.worker_id = start.worker_id
      attempt.started_at = toMs(start.started_at)
      attempt.row_version = event.event_id
    }
    advanceDispatch(rows, start, { status: 'ACKED' }, event.event_id)
    return applied
  },
})
