import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'
import type { RequestSummary } from './request-summary.ts'

export const runKeyIndex = defineTable({
  name: 'run_key_index',
  doc: 'Which run a run key made. Kept for ever, so that a key can never make a second run.',
  key: ['run_key'],
  // Only the first request writes a row, so there is nothing to merge; the rule only makes that explicit.
  storage: {
    kind: 'cold',
    merge: [{ pick: 'smallest', by: ['row_version'], columns: ['run_id', 'request_fingerprint', 'created_at', 'request'] }],
  },
  columns: {
    run_key: col.string('The key.'),
    run_id: col.string('The run it made.'),
    request_fingerprint: col.string('What was asked for.'),
    created_at: col.timestamp('When it was first used.'),
    request: col.optional(col.json<RequestSummary>('Who used it, when, and for what.')),
  },
})
