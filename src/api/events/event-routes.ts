import { isUlid } from '../../lib/ulid.ts'
import { pageOr, serverSent } from '../routing/answer.ts'
import { BASE, type Route, route } from '../routing/route.ts'
import {
  type EventPage,
  type EventStreams,
  type EventsApi,
  eventPage,
  eventsQuery,
  runEventsQuery,
  wireEvent,
} from './event-contract.ts'
import { eventStream, type Stalls } from './event-stream.ts'

export interface ServedEvents extends EventsApi, EventStreams {
  readonly stalls: Stalls
}

interface Asked {
  readonly type?: string | undefined
  readonly asset?: string | undefined
  readonly run?: string | undefined
  readonly limit: number
  readonly cursor?: string | undefined
  readonly follow?: boolean | undefined
}

const eventsOrPage = pageOr(eventPage, serverSent(wireEvent))

/** Routes for what happened: of everything, or of one run. */
export const eventRoutes = (service: ServedEvents): Route[] => [
  route({
    method: 'GET',
    path: `${BASE}/events`,
    operation: 'listEvents',
    summary: 'Lists what happened in the order of the record, or sends it as it happens.',
    needs: 'viewer',
    query: eventsQuery,
    answer: eventsOrPage,
    problems: [404, 409],
    statuses: [200, 204],
    handle: ({ query, request }) => answered(service, query, request, true),
  }),
  route({
    method: 'GET',
    path: `${BASE}/runs/:run_id/events`,
    operation: 'listRunEvents',
    summary: 'Lists what happened in a run, or sends it as it happens until the run is over.',
    needs: 'viewer',
    query: runEventsQuery,
    answer: eventsOrPage,
    problems: [404, 409],
    statuses: [200, 204],
    handle: ({ query, params, request }) => answered(service, { ...query, run: params.run_id }, request, false),
  }),
]

async function answered(
  service: ServedEvents,
  asked: Asked,
  request: Request,
  followsUnlessTold: boolean,
): Promise<EventPage | Response> {
  const { limit, cursor, follow, ...filter } = asked
  const accept = request.headers.get('accept') ?? ''
  const isFollowing = follow ?? (accept.includes('text/event-stream') || (followsUnlessTold && !accept.includes('json')))
  if (!isFollowing) return await service.page({ ...filter, limit, after: cursor ?? 'beginning' })
  // A browser that connects again says what it has seen; that is newer than what its address says.
  const seen = request.headers.get('last-event-id') ?? ''
  const place = isUlid(seen) ? seen : (cursor ?? (followsUnlessTold ? 'now' : 'beginning'))
  const hangUp = new AbortController()
  request.signal.addEventListener('abort', () => hangUp.abort())
  const frames = await service.stream({ ...filter, after: place }, hangUp.signal)
  // To a browser this says not to connect again.
  return frames === undefined ? new Response(null, { status: 204 }) : eventStream(frames, hangUp, service.stalls)
}
