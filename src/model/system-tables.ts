import { col } from './column.ts'
import type { Envelope } from './envelope.ts'
import { defineTable } from './table.ts'

/** Tables that the engine keeps for itself, whatever the domain is. They are stored and queried like any other. */
export const parkedEvents = defineTable({
  name: 'parked_events',
  doc: 'Events that are kept but cannot be applied yet, or not by this version of Servo.',
  key: ['subject', 'event_id'],
  storage: { kind: 'hot' },
  columns: {
    subject: col.string('What it waits for.'),
    event_id: col.string('The event.'),
    event_type: col.string('Its type.'),
    reason: col.oneOf(['waiting', 'unknown_type', 'unknown_version', 'invalid_payload'], 'Why it is here.'),
    envelope: col.json<Envelope>('The whole event.'),
    parked_at: col.timestamp('When the event was received.'),
  },
})

export const historyIndex = defineTable({
  name: 'history_index',
  doc: 'Everything that has ended and was sealed: how it ended and which history file holds its rows.',
  key: ['owner', 'owner_id'],
  storage: {
    kind: 'cold',
    merge: [{ pick: 'smallest', by: ['publish'], columns: ['publish', 'state', 'ended_at', 'listed_at'] }],
  },
  columns: {
    owner: col.string('The table of the thing that ended, e.g. runs.'),
    owner_id: col.string('Its id.'),
    state: col.string('How it ended.'),
    ended_at: col.timestamp('When.'),
    publish: col.int('The publish that sealed it; a history file has the work of a span of publishes.'),
    listed_at: col.optional(
      col.timestamp(
        'Where it stands in lists, if there are any, e.g. when a run was requested; its history file has that order.',
      ),
    ),
  },
})

export const idempotencyKeys = defineTable({
  name: 'idempotency_keys',
  doc: 'Idempotency keys of events whose repetition no row would show, for as long as a queue may repeat them.',
  key: ['idempotency_key'],
  storage: {
    kind: 'cold',
    expiresBy: 'consumed_at',
    merge: [{ pick: 'smallest', by: ['row_version'], columns: ['event_id', 'event_type', 'consumed_at'] }],
  },
  columns: {
    idempotency_key: col.string('The key.'),
    event_id: col.string('The event that used it.'),
    event_type: col.string('Its type.'),
    consumed_at: col.timestamp('When.'),
  },
})

export const systemTables = [parkedEvents, historyIndex, idempotencyKeys]
