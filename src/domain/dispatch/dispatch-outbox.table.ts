import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'

const dispatchStatuses = ['PENDING', 'FAILED', 'CREATED', 'ACKED'] as const
export type DispatchStatus = (typeof dispatchStatuses)[number]
/** Within one offer a status only moves to the right: a failed enqueue may still succeed, a started task is acknowledged for good. */
export const dispatchRank = (status: DispatchStatus): number => dispatchStatuses.indexOf(status)

export const dispatchOutbox = defineTable({
  name: 'dispatch_outbox',
  doc: 'One row per attempt handed, or to be handed, to the queue.',
  key: ['run_id', 'task_key', 'attempt'],
  storage: { kind: 'hot', sealedWith: 'runs' },
  columns: {
    run_id: col.string('The run.'),
    task_key: col.string('The task.'),
    attempt: col.int('The attempt.'),
    dispatch_id: col.string('Readable id: dispatch:{run_id}:{task_key}:{attempt}.'),
    cloud_task_id: col.string('The same id as queues accept it.'),
    attempt_id: col.string('Sent to the worker, which returns it with every report.'),
    status: col.oneOf(dispatchStatuses, 'PENDING until the queue has accepted it, ACKED once a worker has started it.'),
    worker_queue: col.string('Target queue.'),
    offer: col.optional(
      col.int('How often it was offered to the queue; null at the first offer, and once a worker has started it.'),
    ),
    created_at: col.timestamp('When the dispatch was requested.'),
  },
})
export type DispatchRow = Row<typeof dispatchOutbox>
