import type { RecordedDetail } from '../../contract/error-schema.ts'
import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'
import { orderColumn } from '../partitions/order.ts'

export const outcomes = ['SUCCEEDED', 'FAILED', 'CANCELLED'] as const
export type TaskOutcome = (typeof outcomes)[number]

export const taskAttempts = defineTable({
  name: 'task_attempts',
  doc: 'One row per attempt of a task: where it ran, when, and how it ended.',
  key: ['run_id', 'task_key', 'attempt'],
  storage: { kind: 'hot', sealedWith: 'runs' },
  columns: {
    run_id: col.string('The run.'),
    task_key: col.string('The task.'),
    attempt: col.int('From 1, without gaps.'),
    attempt_id: col.string('Deterministic id of the attempt.'),
    state: col.oneOf(['DISPATCHED', 'RUNNING', ...outcomes], 'The state of the attempt.'),
    worker_id: col.optional(col.string('The worker that ran it.')),
    dispatched_at: col.timestamp('When its dispatch was requested.'),
    dispatched_order: orderColumn('dispatched_at'),
    started_at: col.optional(col.timestamp('When the worker started it.')),
    last_heartbeat_at: col.optional(col.timestamp('Last heartbeat while it ran; null once it ended.')),
    finished_at: col.optional(col.timestamp('When the attempt ended.')),
    outcome: col.optional(col.oneOf(outcomes, 'The first outcome reported.')),
    error_category: col.optional(col.string('The kind of failure.')),
    error_message: col.optional(col.string('The error message.')),
    error_detail: col.optional(col.json<RecordedDetail>('Type, code, stack and causes of the error.')),
    retryable: col.optional(col.boolean('True if the failure may be retried.')),
    materialization_id: col.optional(col.string('Id of its materialization.')),
    output: col.optional(col.json('Path, size, checksum and metadata of the output.')),
    metrics: col.optional(col.json('Numbers the attempt reported.')),
    code_version: col.optional(col.string('Version of the code that ran.')),
  },
})
