import { z } from 'zod'
import { SECOND_MS, toMs } from '../../lib/time.ts'
import { id, timestamp } from '../../model/envelope.ts'
import { ignored, type Verdict, waitFor } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { liveRun } from '../runs/run-progress.ts'
import { runSubject, taskSubject } from '../subjects.ts'
import { isTaskOver, taskRank, tasks } from '../tasks/tasks.table.ts'
import { type TimerName, timerTypes } from './timers.table.ts'

/** The fields of every event about a timer, so that each can be read without the others. */
export const timerPayload = z
  .object({
    timer_type: z.enum(timerTypes),
    run_id: id,
    task_key: id.nullish(),
    attempt: z.number().int().min(1).nullish(),
    fire_at: timestamp,
    payload: z.unknown().nullish(),
  })
  .superRefine((timer, context) => {
    const missing = requiredFor[timer.timer_type].filter((name) => timer[name] === undefined || timer[name] === null)
    const [first] = missing
    if (first !== undefined)
      context.addIssue({
        code: 'custom',
        path: [first],
        message: `a ${timer.timer_type} timer needs ${missing.join(', ')}`,
      })
  })
export type TimerPayload = z.infer<typeof timerPayload>

const requiredFor = {
  RETRY: ['run_id', 'task_key', 'attempt'],
  HEARTBEAT_CHECK: ['run_id', 'task_key', 'attempt'],
  SLA_CHECK: ['run_id'],
} as const

export function timerId(timer: TimerPayload): string {
  const epoch = Math.floor(toMs(timer.fire_at) / SECOND_MS)
  const subject = [timer.run_id, timer.task_key, timer.attempt].filter((part) => part != null).join(':')
  return `timer:${timer.timer_type.toLowerCase()}:${subject}:${epoch}`
}

export const aboutTimer = (timer: TimerPayload) => ({ owner: 'runs', id: timer.run_id })

/** Returns whether the subject of the timer waits for it now, later or never again. */
export function wait(rows: Rows, timer: TimerName): 'now' | Verdict {
  const run = liveRun(rows, timer.run_id)
  if (run === 'unknown') return waitFor(runSubject(timer.run_id))
  if (run === 'over') return ignored('run_over')
  if (!timer.task_key) return 'now'
  const task = rows.hot(tasks).get(timer.run_id, timer.task_key)
  if (task === undefined || task.state === 'PLANNED') return waitFor(runSubject(timer.run_id))
  if (isTaskOver(task.state)) return ignored('task_over')
  if (timer.timer_type === 'SLA_CHECK') return 'now'
  const attempt = timer.attempt ?? 0
  if (attempt < task.attempt) return ignored('stale_attempt')
  const later = waitFor(taskSubject(timer.run_id, timer.task_key))
  if (attempt > task.attempt) return later
  if (timer.timer_type === 'RETRY') return task.state === 'RETRY_WAIT' ? 'now' : later
  if (taskRank[task.state] < taskRank.DISPATCHED) return later
  return task.state === 'RETRY_WAIT' ? ignored('stale_attempt') : 'now'
}
