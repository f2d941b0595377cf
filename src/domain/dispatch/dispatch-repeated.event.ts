import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, isVerdict } from '../../model/event.ts'
import { attemptInFlight } from '../tasks/attempt-phase.ts'
import { advanceDispatch } from './acknowledge.ts'
import { dispatchId } from './dispatch-ids.ts'

export const DispatchRepeated = defineEvent({
  type: 'DispatchRepeated',
  version: 1,
  doc: 'No worker started an attempt for a long time, so its dispatch is offered to the queue again, as the same attempt.',
  payload: z.object({
    run_id: id,
    task_key: id,
    attempt: z.number().int().min(1),
    offer: z.number().int().min(2).max(2_147_483_647),
  }),
  idempotencyKey: (again) => `dispatch_again:${dispatchId(again.run_id, again.task_key, again.attempt)}:${again.offer}`,
  dedup: 'structure',
  about: (again) => ({ owner: 'runs', id: again.run_id }),
  fold({ event, payload: again, rows }) {
    const task = attemptInFlight(rows, again)
    if (isVerdict(task)) return task
    return advanceDispatch(rows, again, { status: 'PENDING', offer: again.offer }, event.event_id) ? applied : duplicate
  },
})
