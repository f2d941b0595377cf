import { z } from 'zod'
import { toMs } from '../../lib/time.ts'
import { id, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, isVerdict } from '../../model/event.ts'
import { attemptInFlight } from './attempt-phase.ts'
import { taskAttempts } from './task-attempts.table.ts'
import { tasks } from './tasks.table.ts'

export const TaskHeartbeat = defineEvent({
  type: 'TaskHeartbeat',
  version: 1,
  doc: 'A worker sent a heartbeat for an attempt.',
  payload: z.object({ run_id: id, task_key: id, attempt: z.number().int().min(1), attempt_id: id, heartbeat_at: timestamp }),
  idempotencyKey: (beat) => `heartbeat:${beat.run_id}:${beat.task_key}:${beat.attempt}:${beat.heartbeat_at}`,
  dedup: 'structure',
  about: (beat) => ({ owner: 'runs', id: beat.run_id }),
  fold({ payload: beat, rows }) {
    const inFlight = attemptInFlight(rows, beat)
    if (isVerdict(inFlight)) return inFlight
    const at = toMs(beat.heartbeat_at)
    if (inFlight.last_heartbeat_at !== null && inFlight.last_heartbeat_at >= at) return duplicate
    // A heartbeat decides nothing about the row, so it leaves its version alone.
    const task = rows.hot(tasks).edit(beat.run_id, beat.task_key)
    if (task !== undefined) task.last_heartbeat_at = at
    const attempt = rows.hot(taskAttempts).edit(beat.run_id, beat.task_key, beat.attempt)
    if (attempt !== undefined) attempt.last_heartbeat_at = at
    return applied
  },
})
