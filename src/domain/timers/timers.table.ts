import { col } from '../../model/column.ts'
import type { Rows } from '../../model/rows.ts'
import { defineTable } from '../../model/table.ts'
import { runSubject } from '../subjects.ts'

export const timerTypes = ['RETRY', 'HEARTBEAT_CHECK', 'SLA_CHECK'] as const
export type TimerType = (typeof timerTypes)[number]
/** An alarm that is no longer needed has no state: its row is removed with what it waited for. */
const timerStates = ['SCHEDULED', 'FIRED'] as const

export const timers = defineTable({
  name: 'timers',
  doc: 'Alarms that are set. One row per thing that is waited for; a later alarm for the same thing replaces it, and the row goes when the wait is over.',
  key: ['subject', 'slot'],
  storage: { kind: 'hot' },
  columns: {
    subject: col.string('The run that waits.'),
    slot: col.string('What it waits for: timer type, task and attempt.'),
    timer_id: col.string('Readable id: timer:{type}:{…}:{epoch}.'),
    cloud_task_id: col.string('The same id as queues accept it.'),
    timer_type: col.oneOf(timerTypes, 'What happens when it fires.'),
    run_id: col.string('The run.'),
    task_key: col.optional(col.string('The task, if one.')),
    attempt: col.optional(col.int('The attempt, for retry and heartbeat.')),
    fire_at: col.timestamp('When it is due.'),
    state: col.oneOf(timerStates, 'The state of the alarm.'),
    payload: col.optional(col.json('What the handler needs.')),
  },
})

export interface TimerName {
  readonly timer_type: TimerType
  readonly run_id: string
  readonly task_key?: string | null | undefined
  readonly attempt?: number | null | undefined
}

export const timerSubject = (timer: TimerName): string => runSubject(timer.run_id)

/** An alarm on a whole run has no task; one on a deadline outlives attempts; the others watch one attempt. */
export function timerSlot({ timer_type, task_key, attempt }: Omit<TimerName, 'run_id'>): string {
  if (!task_key) return timer_type
  return timer_type === 'SLA_CHECK' ? `${timer_type}:${task_key}` : `${timer_type}:${task_key}:${attempt}`
}

/** A task that ended has nothing left to wait for. */
export function clearTaskTimers(rows: Rows, task: { run_id: string; task_key: string; attempt: number }): void {
  const { run_id, task_key, attempt } = task
  for (const timer_type of ['RETRY', 'HEARTBEAT_CHECK', 'SLA_CHECK'] as const) {
    rows.hot(timers).remove(runSubject(run_id), timerSlot({ task_key, attempt, timer_type }))
  }
}
