import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'

export const taskStates = [
  'PLANNED',
  'BLOCKED',
  'READY',
  'DISPATCHED',
  'RUNNING',
  'RETRY_WAIT',
  'SKIPPED',
  'CANCELLED',
  'FAILED',
  'SUCCEEDED',
] as const
export type TaskState = (typeof taskStates)[number]

/** Within one attempt a task only moves to a higher rank; the gap leaves room for states before the end. */
export const taskRank: Record<TaskState, number> = {
  PLANNED: 0,
  BLOCKED: 1,
  READY: 2,
  DISPATCHED: 3,
  RUNNING: 4,
  RETRY_WAIT: 5,
  SKIPPED: 10,
  CANCELLED: 11,
  FAILED: 12,
  SUCCEEDED: 13,
}
/** The error category of attempts that were given up, for example because their process ended. */
export const LOST = 'lost'

export const isTaskOver = (state: TaskState): boolean => taskRank[state] >= taskRank.SKIPPED

export const tasks = defineTable({
  name: 'tasks',
  doc: 'One row per task of a run: an asset and a partition to materialize, and its progress.',
  key: ['run_id', 'task_key'],
  storage: { kind: 'hot', sealedWith: 'runs' },
  columns: {
    run_id: col.string('The run.'),
    task_key: col.string('Names asset and partition within the run.'),
    asset_key: col.optional(col.string('The asset this task materializes.')),
    partition_key: col.optional(col.string('Canonical partition key, null for an unpartitioned asset.')),
    partition_values: col.optional(
      col.map('Dimension → value of the partition; of a range, where it is the same in all of it.'),
    ),
    partition_keys: col.optional(col.strings('Every partition of a task for a range; null for a task of one partition.')),
    state: col.oneOf(taskStates, 'The furthest state of the newest attempt that was seen.'),
    attempt: col.int('Current attempt, from 1.'),
    attempt_id: col.optional(col.string('Authenticates facts about the current attempt; null before its dispatch.')),
    deps_total: col.int('Upstream edges.'),
    deps_satisfied_count: col.int('Upstream edges that are SUCCESS.'),
    max_attempts: col.int('Attempts allowed, not counting lost ones.'),
    lost_attempts: col.optional(col.int('Attempts that were lost; null if none was.')),
    heartbeat_timeout_sec: col.int('Seconds without a heartbeat after which a running attempt counts as lost.'),
    timeout_sec: col.optional(col.int('Longest an attempt may run.')),
    pool: col.optional(col.string('Named concurrency limit.')),
    priority: col.int('A larger number is more urgent.'),
    spec: col.optional(col.json('What else the worker and the retry policy need.')),
    ready_at: col.optional(col.timestamp('When the last upstream edge was satisfied, or the retry became due.')),
    last_heartbeat_at: col.optional(col.timestamp('Last heartbeat of the current attempt.')),
    retry_not_before: col.optional(col.timestamp('The earliest time for a retry, if the failed attempt asked for one.')),
    finished_at: col.optional(col.timestamp('When the task ended.')),
    error_message: col.optional(col.string('Why the last attempt failed.')),
    materialization_id: col.optional(col.string('What a successful task produced.')),
    overlap_run_id: col.optional(
      col.string('For a task that was skipped because another run was materializing its partition: that run.'),
    ),
    cause_task_key: col.optional(col.string('For a task that was skipped or cancelled: the task that failed first.')),
    cause_event_id: col.optional(col.string('The event that ended it.')),
  },
})
export type TaskRow = Row<typeof tasks>
