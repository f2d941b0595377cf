import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'

export const sensorMessages = defineTable({
  name: 'sensor_messages',
  doc: 'Messages to sensors. Kept for ever, so that a message is never accepted twice; a dead letter is one that failed too often.',
  key: ['sensor_id', 'message_id'],
  storage: {
    kind: 'cold',
    merge: [
      {
        // Each fold that changes a message reads it first, so the later version has the higher number.
        pick: 'largest',
        by: ['revision'],
        columns: [
          'revision',
          'status',
          'first_seen_at',
          'tries',
          'replayed_after',
          'accepted_eval_id',
          'accepted_at',
          'body_hash',
          'body_size',
          'last_error',
          'dead_since',
          'replayed_at',
          'replayed_by',
        ],
      },
    ],
  },
  columns: {
    sensor_id: col.string('The sensor.'),
    message_id: col.string('The id that its sender gave it.'),
    status: col.oneOf(
      ['failing', 'dead', 'accepted'],
      'failing is tried again when it is delivered again, dead only once it is replayed.',
    ),
    first_seen_at: col.timestamp('When it was first evaluated.'),
    tries: col.int('How often it was tried.'),
    replayed_after: col.int('How many of these tries no longer count, because it was replayed.'),
    accepted_eval_id: col.optional(col.string('The accepted evaluation.')),
    accepted_at: col.optional(col.timestamp('When that was recorded.')),
    body_hash: col.optional(col.string('SHA-256 of the body that was accepted or tried last.')),
    body_size: col.optional(col.long('Its size in bytes.')),
    last_error: col.optional(col.string('Why the last try failed.')),
    dead_since: col.optional(col.timestamp('Since when it has been a dead letter.')),
    replayed_at: col.optional(col.timestamp('When it was last replayed.')),
    replayed_by: col.optional(col.string('Who replayed it.')),
    revision: col.int('Grows with every change of the row.'),
  },
})

export type SensorMessageRow = Row<typeof sensorMessages>
