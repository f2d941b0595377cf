import { Heap } from '../../lib/collections/heap.ts'
import { toIso } from '../../lib/time.ts'
import type { Controller, Observed } from '../../model/controller.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import type { Row } from '../../model/table.ts'
import { becauseOf } from '../runs/event-context.ts'
import { isRowOf } from '../typed-rows.ts'
import { TimerFired } from './timer-fired.event.ts'
import { type TimerType, timers } from './timers.table.ts'

export type TimerRow = Row<typeof timers>

/** Further events when an alarm of one kind goes off. */
export type OnAlarm = (timer: Readonly<TimerRow>, observed: Observed) => readonly NewEvent[]

/**
 * Lets alarms go off when they are due. Due times come from rows, so an alarm that was lost is found at the next
 * look. An alarm acts because something did not happen, so it waits while facts may be unread.
 */
export function alarmController(following: Partial<Record<TimerType, OnAlarm>> = {}): Controller {
  const due = new Heap<{ at: number; timer: Readonly<TimerRow> }>((a, b) => a.at < b.at)
  const known = new Map<Readonly<TimerRow>, number>()
  return {
    name: 'alarm',
    doc: 'Lets alarms go off when they are due.',
    watches: [timers],
    actsOnAbsence: true,
    observe: (table, timer) => {
      if (!isRowOf(timers, table, timer) || timer.state !== 'SCHEDULED') return
      if (known.get(timer) === timer.fire_at) return
      known.set(timer, timer.fire_at)
      due.push({ at: timer.fire_at, timer })
    },
    decide(observed): readonly NewEvent[] {
      const events: NewEvent[] = []
      for (let first = due.peek(); first !== undefined && first.at <= observed.now; first = due.peek()) {
        due.pop()
        const { timer } = first
        if (observed.rows.hot(timers).get(timer.subject, timer.slot) !== timer) {
          known.delete(timer)
          continue
        }
        if (known.get(timer) !== timer.fire_at || timer.state === 'FIRED') continue
        known.delete(timer)
        events.push(fireTimer(observed.rows, timer), ...(following[timer.timer_type]?.(timer, observed) ?? []))
      }
      return events
    },
    wakeAt: () => due.peek()?.at,
  }
}

function fireTimer(rows: Rows, timer: Readonly<TimerRow>): NewEvent {
  const { timer_type, run_id, task_key, attempt, fire_at, payload, row_version } = timer
  return newEvent(
    TimerFired,
    { timer_type, run_id, task_key, attempt, fire_at: toIso(fire_at), payload },
    becauseOf(rows, { run_id, row_version }),
  )
}
