import { z } from 'zod'
import { isUlid } from '../../lib/ulid.ts'
import { id, timestamp } from '../../model/envelope.ts'

/** An event as it is on record. Values that events carry are left out: their size and checksum say which they were. */
export const wireEvent = z.object({
  event_id: z.string(),
  event_type: z.string(),
  event_version: z.number().int(),
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
})
export type WireEvent = z.infer<typeof wireEvent>

export const eventPage = z.object({
  /** In the order of the record. */
  events: z.array(wireEvent),
  /** Behind the last event that was looked at; null if there is nothing more on record. */
  next_cursor: z.string().nullable(),
})
export type EventPage = z.infer<typeof eventPage>

const place = z
  .string()
  .refine((text) => text === 'beginning' || text === 'now' || isUlid(text), 'must be the id of an event, `beginning` or `now`')

/** Which events: all that are named. */
const filters = {
  /** One or several names of types, with commas between them. */
  type: z.string().max(2_048).optional(),
  asset: id.optional(),
}
const paging = {
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
  /** The `next_cursor` of the page before. */
  cursor: z.string().refine(isUlid, 'must be the next_cursor of a page').optional(),
  /** Begins behind this event. */
  after: place.optional(),
  /** True for events as they happen, as `text/event-stream`; false for a page of what is on record. */
  follow: z.stringbool({ truthy: ['true'], falsy: ['false'] }).optional(),
}

export const runEventsQuery = z.object({ ...filters, ...paging })
export const eventsQuery = z.object({ ...filters, run: id.optional(), ...paging })

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
