import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'
import type { RequestSummary } from './request-summary.ts'

export const runKeyConflicts = defineTable({
  name: 'run_key_conflicts',
  doc: 'Requests that reused a run key for different work. They created no run.',
  key: ['run_key', 'conflicting_fingerprint'],
  storage: {
    kind: 'cold',
    merge: [
      {
        pick: 'smallest',
        by: ['conflicting_event_id'],
        columns: [
          'conflicting_event_id',
          'existing_fingerprint',
          'existing_run_id',
          'existing_request',
          'conflicting_request',
          'detected_at',
        ],
      },
    ],
  },
  columns: {
    run_key: col.string('The key used twice.'),
    conflicting_fingerprint: col.string('Fingerprint of the later request.'),
    existing_fingerprint: col.string('Fingerprint of the first request.'),
    existing_run_id: col.string('The run of the first request.'),
    existing_request: col.optional(col.json<RequestSummary>('Who made the first request, when, and for what.')),
    conflicting_request: col.optional(col.json<RequestSummary>('Who made the later request, when, and for what.')),
    conflicting_event_id: col.string('The later request.'),
    detected_at: col.timestamp('When it was received.'),
  },
})
