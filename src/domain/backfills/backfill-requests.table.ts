import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const backfillRequests = defineTable({
  name: 'backfill_requests',
  doc: 'The backfill of every request for one, for ever: a repeated request is answered with the backfill that it made.',
  key: ['request_key'],
  storage: { kind: 'cold', merge: [] },
  columns: {
    request_key: col.string('create:{request} or retry:{parent}:{request}.'),
    backfill_id: col.string('The backfill it made.'),
    request_fingerprint: col.string('What was asked for.'),
    created_at: col.timestamp('When.'),
    created_event_id: col.string('The event that recorded it.'),
  },
})

/** What a request for a backfill is known by. A retry of one parent is no retry of another. */
export const requestKey = (request: string, parent: string | null | undefined): string =>
  parent == null ? `create:${request}` : `retry:${parent}:${request}`
