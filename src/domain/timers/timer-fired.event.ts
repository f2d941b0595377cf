import { toMs } from '../../lib/time.ts'
import { applied, defineEvent, duplicate, type FoldContext, ignored, type Verdict, waitFor } from '../../model/event.ts'
import { touchRun } from '../runs/run-progress.ts'
import { taskSubject } from '../subjects.ts'
import { tasks } from '../tasks/tasks.table.ts'
import { editKnown } from '../typed-rows.ts'
import { aboutTimer, type TimerPayload, timerId, timerPayload, wait } from './timer.ts'
import { timerSlot, timerSubject, timers } from './timers.table.ts'

export const TimerFired = defineEvent({
  type: 'TimerFired',
  version: 1,
  doc: 'An alarm went off. A retry alarm makes its task ready for the next attempt.',
  payload: timerPayload,
  idempotencyKey: (timer) => `timer_fired:${timerId(timer)}`,
  dedup: 'structure',
  about: aboutTimer,
  ordered: [
    {
      with: ['TimerFired'],
      when: (mine, other) =>
        mine.timer_type === 'RETRY' &&
        other.timer_type === 'RETRY' &&
        timerSubject(mine) === timerSubject(other) &&
        timerSlot(mine) === timerSlot(other),
      why: 'Of two alarms for one retry, the first to go off starts the attempt.',
    },
  ],
  fold(context) {
    const { event, at, payload: timer, rows, wake } = context
    const phase = wait(rows, timer)
    if (phase !== 'now') return phase
    const { run_id: runId, task_key: taskKey } = timer
    if (timer.timer_type !== 'RETRY' || !taskKey) return ring(context)

    rows.hot(timers).remove(timerSubject(timer), timerSlot(timer))
    const task = editKnown(rows.hot(tasks), runId, taskKey)
    task.attempt += 1
    task.attempt_id = null
    task.state = 'READY'
    task.ready_at = at
    task.retry_not_before = null
    task.row_version = event.event_id
    touchRun(rows, runId, event.event_id)
    wake(taskSubject(runId, taskKey))
    return applied
  },
})

/** Marks the alarm as gone off. Of two alarms in the same slot, the later one counts. */
function ring({ event, payload: timer, rows }: FoldContext<TimerPayload>): Verdict {
  const slot = timerSlot(timer)
  const subject = timerSubject(timer)
  const current = rows.hot(timers).get(subject, slot)
  const fireAt = toMs(timer.fire_at)
  if (current !== undefined && current.fire_at > fireAt) return ignored('replaced_timer')
  if (current === undefined || current.fire_at < fireAt) {
    return waitFor(timer.task_key ? taskSubject(timer.run_id, timer.task_key) : subject)
  }
  if (current.state === 'FIRED') return duplicate
  const row = rows.hot(timers).edit(subject, slot)
  if (row === undefined) return duplicate
  row.state = 'FIRED'
  row.row_version = event.event_id
  return applied
}
