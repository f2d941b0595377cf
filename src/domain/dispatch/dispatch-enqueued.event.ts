import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, isVerdict } from '../../model/event.ts'
import { attemptInFlight } from '../tasks/attempt-phase.ts'
import { advanceDispatch } from './acknowledge.ts'
import { dispatchId } from './dispatch-ids.ts'

export const DispatchEnqueued = defineEvent({
  type: 'DispatchEnqueued',
  version: 1,
  doc: 'The queue accepted or refused a dispatch.',
  payload: z.object({
    run_id: id,
    task_key: id,
    attempt: z.number().int().min(1),
    status: z.enum(['CREATED', 'FAILED']),
    /** The number of the offer; absent for the first. */
    offer: z.number().int().min(2).max(2_147_483_647).optional(),
  }),
  idempotencyKey: (ack) => {
    const first = `dispatch_ack:${dispatchId(ack.run_id, ack.task_key, ack.attempt)}:${ack.status}`
    return ack.offer === undefined ? first : `${first}:${ack.offer}`
  },
  dedup: 'structure',
  about: (ack) => ({ owner: 'runs', id: ack.run_id }),
  fold({ event, payload: ack, rows }) {
    const task = attemptInFlight(rows, ack)
    if (isVerdict(task)) return task
    return advanceDispatch(rows, ack, { status: ack.status, offer: ack.offer ?? 1 }, event.event_id) ? applied : duplicate
  },
})
