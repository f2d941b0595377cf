import { Heap } from '../../lib/collections/heap.ts'
import type { Controller } from '../../model/controller.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { becauseOf } from '../runs/event-context.ts'
import { runs } from '../runs/runs.table.ts'
import { isRowOf } from '../typed-rows.ts'
import { type DispatchRow, dispatchOutbox } from './dispatch-outbox.table.ts'
import { DispatchRepeated } from './dispatch-repeated.event.ts'
import { LOCAL_QUEUE } from './queue.ts'

/**
 * Offers a dispatch again that no worker began, although a queue took it or refused it. A dispatch that waits for a worker to ask
 * is not stuck: it is PENDING, and on offer all the time.
 */
export function stuckDispatchController(stuckAfterMs: () => number): Controller {
  const due = new Heap<{ at: number; dispatch: Readonly<DispatchRow> }>((a, b) => a.at < b.at)
  const known = new Map<Readonly<DispatchRow>, number>()
  const stuckAt = ({ created_at, offer }: Readonly<DispatchRow>): number => created_at + (offer ?? 1) * stuckAfterMs()

  /** The number of the offer follows from the time that has passed: after a long pause there is one offer, not one for each that was missed. */
  const nextOffer = ({ created_at, offer }: Readonly<DispatchRow>, now: number): number =>
    Math.max((offer ?? 1) + 1, 1 + Math.floor((now - created_at) / stuckAfterMs()))

  function waitUntil(at: number, dispatch: Readonly<DispatchRow>): void {
    if (known.get(dispatch) === at) return
    known.set(dispatch, at)
    due.push({ at, dispatch })
  }

  return {
    name: 'stuck dispatches',
    doc: 'Offers dispatches again that a queue lost.',
    watches: [dispatchOutbox],
    actsOnAbsence: true,
    observe: (table, row) => {
      if (!isRowOf(dispatchOutbox, table, row)) return
      if (isWithQueue(row)) waitUntil(stuckAt(row), row)
      else known.delete(row)
    },
    decide({ rows, now }): readonly NewEvent[] {
      const events: NewEvent[] = []
      for (let first = due.peek(); first !== undefined && first.at <= now; first = due.peek()) {
        due.pop()
        const { dispatch, at } = first
        if (known.get(dispatch) !== at) continue
        known.delete(dispatch)
        if (!isWithQueue(dispatch) || isCancelled(rows, dispatch)) continue
        events.push(repeatDispatch(rows, dispatch, nextOffer(dispatch, now)))
      }
      return events
    },
    wakeAt: () => due.peek()?.at,
  }
}

const isWithQueue = ({ worker_queue, status }: Readonly<DispatchRow>): boolean =>
  worker_queue !== LOCAL_QUEUE && (status === 'CREATED' || status === 'FAILED')

const isCancelled = (rows: Rows, { run_id }: Readonly<DispatchRow>): boolean =>
  rows.hot(runs).get(run_id)?.cancel_requested_at !== null

function repeatDispatch(rows: Rows, dispatch: Readonly<DispatchRow>, offer: number): NewEvent {
  const { run_id, task_key, attempt } = dispatch
  return newEvent(DispatchRepeated, { run_id, task_key, attempt, offer }, becauseOf(rows, dispatch))
}
