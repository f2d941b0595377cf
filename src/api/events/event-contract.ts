import { z } from 'zod'
import { isUlid } from '../../lib/ulid.ts'
import { id, timestamp } from '../../model/envelope.ts'
import { named, type Told, whole } from '../answers/told.ts'
import { listQuery } from '../request/list-query.ts'

/** An event as it is on record. Values that events carry are left out: their size and checksum say which they were. */
export const wireEvent = named(
  'Event',
  z.object({
    event_id: z.string(),
    event_type: z.string(),
    event_version: whole,
    timestamp,
    source: z.string(),
    tenant_id: z.string(),
    workspace_id: z.string(),
    idempotency_key: z.string(),
    correlation_id: z.string().optional(),
    causation_id: z.string().optional(),
    traceparent: z.string().optional(),
    actor: z.string().optional(),
    behind_ms: z.number().optional(),
    payload: z.record(z.string(), z.unknown()),
  }),
)
export type WireEvent = Told<typeof wireEvent>

export const eventPage = named(
  'EventPage',
  z.object({
    events: z.array(wireEvent).describe('In the order of the record.'),
    next_cursor: z.string().nullable().describe('The `cursor` of the next page; null if there is nothing more on record.'),
  }),
)
export type EventPage = Told<typeof eventPage>

/** Which events, and from where on. */
const asked = listQuery.extend({
  cursor: z
    .string()
    .refine(
      (text) => text === 'beginning' || text === 'now' || isUlid(text),
      'must be the id of an event, `beginning` or `now`',
    )
    .optional()
    .describe('Begins behind this event: the `next_cursor` of the page before, the id of any event, `beginning` or `now`.'),
  type: z.string().max(2_048).optional().describe('Only events of this type; several have commas between them.'),
  asset: id.optional().describe('Only events about this asset.'),
  follow: z
    .stringbool({ truthy: ['true'], falsy: ['false'] })
    .optional()
    .describe('True for events as they happen, as `text/event-stream`; false for a page of what is on record.'),
})

export const runEventsQuery = asked
export const eventsQuery = asked.extend({ run: id.optional().describe('Only events of this run.') })

export interface EventFilter {
  readonly run?: string | undefined
  readonly type?: string | undefined
  readonly asset?: string | undefined
}

export interface EventsAfter extends EventFilter {
  /** The id of an event, `beginning` or `now`. */
  readonly after: string
}

/** Questions about what happened. */
export interface EventsApi {
  page(query: EventsAfter & { readonly limit: number }): Promise<EventPage>
  /** Everything from a place on, as it happens, until the signal is given; events of one run until it is over. */
  follow(query: EventsAfter, signal: AbortSignal): AsyncIterable<WireEvent>
}

/** The same as a server sends it, for all who follow: one encoding of each event. */
export interface EventStreams {
  /** Undefined if nothing will ever come: the run is over, and everything of it was seen. */
  stream(query: EventsAfter, signal: AbortSignal): Promise<AsyncIterable<Uint8Array> | undefined>
}
