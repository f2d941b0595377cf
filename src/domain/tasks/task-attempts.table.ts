import type { ErrorDetail } from '../../contract/error-schema.ts'
import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

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
    state: col.oneOf(['DISPATCHED', 'RUNNING', ...outcomes], 'How far the attempt is.'),
    worker_id: col.optional(col.string('The worker that ran it.')),
    dispatched_at: col.timestamp('When its dispatch was requested.'),
    started_at: col.optional(col.timestamp('When the worker began.')),
    last_heartbeat_at: col.optional(col.timestamp('Last sign of life while it ran; null once it ended.')),
    finished_at: col.optional(col.timestamp('When the worker ended.')),
    outcome: col.optional(col.oneOf(outcomes, 'The first outcome reported.')),
    error_category: col.optional(col.string('What kind of failure.')),
    error_message: col.optional(col.string('What went wrong.')),
    error_detail: col.optional(col.json<ErrorDetail>('Type, code, stack and causes of the error.')),
    retryable: col.optional(col.boolean('Whether the failure may be tried again.')),
    materialization_id: col.optional(col.string('What it produced.')),
    output: col.optional(col.json('Where the output is and what is known of it.')),
    metrics: col.optional(col.json('Numbers the attempt reported.')),
    code_version: col.optional(col.string('Version of the code that ran.')),
  },
})
