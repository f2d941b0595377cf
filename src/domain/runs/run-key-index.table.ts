import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'
import type { RequestSummary } from './request-summary.ts'

export const runKeyIndex = defineTable({
  name: 'run_key_index',
  doc: 'The run that each run key created. Kept for ever, so that a key never creates a second run.',
  key: ['run_key'],
  // Only the first request writes a row, so there is nothing to merge; the rule only makes that explicit.
  storage: {
    kind: 'cold',
    merge: [{ pick: 'smallest', by: ['row_version'], columns: ['run_id', 'request_fingerprint', 'created_at', 'request'] }],
  },
  columns: {
    run_key: col.string('The key.'),
    run_id: col.string('The run it created.'),
    request_fingerprint: col.string('Fingerprint of the request.'),
    created_at: col.timestamp('When it was first used.'),
    request: col.optional(col.json<RequestSummary>('Who used it, when, and for what.')),
  },
})
