import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const sensorMessageConflicts = defineTable({
  name: 'sensor_message_conflicts',
  doc: 'Bodies that came under the id of a message that was accepted with another body. They were not evaluated, or did not count.',
  key: ['sensor_id', 'message_id', 'body_hash'],
  storage: {
    kind: 'cold',
    merge: [
      {
        pick: 'smallest',
        by: ['conflicting_event_id'],
        columns: [
          'conflicting_event_id',
          'body_size',
          'accepted_body_hash',
          'accepted_body_size',
          'accepted_eval_id',
          'detected_at',
        ],
      },
    ],
  },
  columns: {
    sensor_id: col.string('The sensor.'),
    message_id: col.string('The id used twice.'),
    body_hash: col.string('SHA-256 of the other body.'),
    body_size: col.optional(col.long('Its size in bytes.')),
    accepted_body_hash: col.optional(col.string('SHA-256 of the body that was accepted.')),
    accepted_body_size: col.optional(col.long('Its size in bytes.')),
    accepted_eval_id: col.string('The accepted evaluation.'),
    conflicting_event_id: col.string('The event that reported it.'),
    detected_at: col.timestamp('When it was reported.'),
  },
})
