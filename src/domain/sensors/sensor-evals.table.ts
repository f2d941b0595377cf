import { evalStatuses } from '../../contract/automation-statuses.ts'
import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'
import type { KeyCount } from './evaluation/besides-runs.ts'

export const sensorEvals = defineTable({
  name: 'sensor_evals',
  doc: 'Evaluations of sensors and their results. Consecutive polls that found nothing may be one row.',
  key: ['eval_id'],
  storage: {
    kind: 'cold',
    expiresBy: 'evaluated_at',
    merge: [
      {
        pick: 'largest',
        by: ['eval_count', 'eval_event_id'],
        columns: [
          'eval_count',
          'eval_event_id',
          'sensor_id',
          'evaluated_at',
          'evaluated_until',
          'trigger_source',
          'message_id',
          'try',
          'state_version',
          'requested_by',
          'definition_version',
          'body_hash',
          'body_size',
          'cursor_before',
          'cursor_after',
          'status',
          'accepted',
          'run_keys',
          'run_fingerprints',
          'keys_added',
          'keys_removed',
          'error',
          'duration_ms',
        ],
      },
    ],
  },
  columns: {
    eval_id: col.string('{sensor}:msg:{message}:{try}:{begun}, {sensor}:poll:{version}:{begun} or {sensor}:polls:{version}.'),
    sensor_id: col.string('The sensor.'),
    evaluated_at: col.timestamp('When it was recorded; of several polls, when the first was made.'),
    evaluated_until: col.optional(col.timestamp('When the last of several polls was made.')),
    eval_count: col.long('How many evaluations the row stands for.'),
    trigger_source: col.oneOf(['push', 'poll'], 'What made it happen: a message, or the clock.'),
    message_id: col.optional(col.string('The message, for a push.')),
    try: col.optional(col.int('Which try at the message it was.')),
    state_version: col.optional(col.int('The version of the state that a poll began from.')),
    requested_by: col.optional(col.string('Who requested it, if neither a sender nor the clock did.')),
    definition_version: col.optional(col.string('The definition as it was then.')),
    body_hash: col.optional(col.string('SHA-256 of the body of the message, which is not kept.')),
    body_size: col.optional(col.long('Its size in bytes.')),
    cursor_before: col.optional(col.string('Where a poll began.')),
    cursor_after: col.optional(col.string('Where it ended; null keeps the cursor.')),
    status: col.oneOf(
      evalStatuses,
      'skipped_stale_cursor: another poll from the same version was faster. skipped_duplicate: the message was accepted before.',
    ),
    accepted: col.boolean(
      'True if its runs and keys count. Of the evaluations of a message or a version one is accepted at most.',
    ),
    run_keys: col.strings('Runs it requested. A key is listed twice if it was used for two different requests.'),
    run_fingerprints: col.optional(col.strings('What it requested with each of these keys.')),
    keys_added: col.optional(col.json<readonly KeyCount[]>('How many keys it added to dynamic sets: set_name and count.')),
    keys_removed: col.optional(col.json<readonly KeyCount[]>('How many it removed.')),
    error: col.optional(col.string('Why it failed.')),
    duration_ms: col.optional(col.long('How long the code took.')),
    eval_event_id: col.string('The event that recorded it.'),
  },
})

export type SensorEvalRow = Row<typeof sensorEvals>
