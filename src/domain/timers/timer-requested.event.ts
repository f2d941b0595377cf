import { toMs } from '../../lib/time.ts'
import { applied, defineEvent, duplicate, ignored } from '../../model/event.ts'
import { queueSafeId } from '../dispatch/dispatch-ids.ts'
import { taskSubject } from '../subjects.ts'
import { aboutTimer, timerId, timerPayload, wait } from './timer.ts'
import { timerSlot, timerSubject, timers } from './timers.table.ts'

export const TimerRequested = defineEvent({
  type: 'TimerRequested',
  version: 1,
  doc: 'An alarm was set.',
  payload: timerPayload,
  idempotencyKey: (timer) => timerId(timer),
  dedup: 'structure',
  about: aboutTimer,
  fold({ event, payload: timer, rows, wake }) {
    const phase = wait(rows, timer)
    if (phase !== 'now') return phase
    const subject = timerSubject(timer)
    const slot = timerSlot(timer)
    const fireAt = toMs(timer.fire_at)
    const current = rows.hot(timers).get(subject, slot)
    if (current !== undefined && current.fire_at === fireAt) return duplicate
    if (current !== undefined && current.fire_at > fireAt) return ignored('replaced_timer')
    const readableId = timerId(timer)
    rows.hot(timers).insert({
      subject,
      slot,
      timer_id: readableId,
      cloud_task_id: queueSafeId('t', readableId),
      timer_type: timer.timer_type,
      run_id: timer.run_id,
      task_key: timer.task_key ?? null,
      attempt: timer.attempt ?? null,
      fire_at: fireAt,
      state: 'SCHEDULED',
      payload: timer.payload ?? null,
      row_version: event.event_id,
    })
    wake(timer.task_key ? taskSubject(timer.run_id, timer.task_key) : subject)
    return applied
  },
})
