import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

const evalStatuses = ['triggered', 'no_new_data', 'error', 'skipped_stale_cursor'] as const

export const sensorEvals = defineTable({
  name: 'sensor_evals',
  doc: 'One row per evaluation of a sensor and what came of it.',
  key: ['eval_id'],
  storage: {
    kind: 'cold',
    expiresBy: 'evaluated_at',
    merge: [
      {
        pick: 'smallest',
        by: ['row_version'],
        columns: [
          'sensor_id',
          'evaluated_at',
          'trigger_source',
          'message_id',
          'poll_epoch',
          'cursor_before',
          'cursor_after',
          'expected_state_version',
          'status',
          'run_keys',
          'error',
        ],
      },
    ],
  },
  columns: {
    eval_id: col.string('The evaluation.'),
    sensor_id: col.string('The sensor.'),
    evaluated_at: col.timestamp('When it was recorded.'),
    trigger_source: col.oneOf(['push', 'poll'], 'What made it happen.'),
    message_id: col.optional(col.string('The message, for a push.')),
    poll_epoch: col.optional(col.long('The poll, in seconds since 1970.')),
    cursor_before: col.optional(col.string('Where it began.')),
    cursor_after: col.optional(col.string('Where it ended; null keeps the cursor.')),
    expected_state_version: col.optional(col.int('The version it started from.')),
    status: col.oneOf(evalStatuses, 'skipped_stale_cursor means that another poll was faster, so this one counts for nothing.'),
    run_keys: col.strings('Runs it asked for.'),
    error: col.optional(col.string('Why it failed.')),
  },
})
