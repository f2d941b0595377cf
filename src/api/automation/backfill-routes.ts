import { BASE, type Route, route } from '../routing/route.ts'
import {
  type BackfillsApi,
  backfillCancelBody,
  backfillChangesBody,
  backfillPreviewBody,
  backfillQuery,
  backfillRetryBody,
  backfillSwitchBody,
  chunkQuery,
  newBackfillBody,
} from './backfill-contract.ts'
import { expectedVersion } from './expected-version.ts'

const backfills = `${BASE}/backfills` as const
const backfill = `${backfills}/:backfill_id` as const

/** Routes for backfills. */
export const backfillRoutes = (service: BackfillsApi): Route[] => [
  route({ method: 'GET', path: backfills, needs: 'viewer', query: backfillQuery, handle: ({ query }) => service.list(query) }),
  route({
    method: 'POST',
    path: backfills,
    needs: 'operator',
    body: newBackfillBody,
    statuses: [202],
    handle: ({ body, by }) => service.create(body, by.name),
  }),
  // It records nothing.
  route({
    method: 'POST',
    path: `${backfills}/preview`,
    needs: 'viewer',
    body: backfillPreviewBody,
    handle: ({ body }) => service.preview(body),
  }),
  route({ method: 'GET', path: backfill, needs: 'viewer', handle: ({ params }) => service.get(params.backfill_id) }),
  route({
    method: 'PATCH',
    path: backfill,
    needs: 'operator',
    query: expectedVersion,
    body: backfillChangesBody,
    statuses: [202],
    handle: ({ params, query, body, by }) => service.update(params.backfill_id, body, by.name, query.expected_state_version),
  }),
  route({
    method: 'GET',
    path: `${backfill}/chunks`,
    needs: 'viewer',
    query: chunkQuery,
    handle: ({ params, query }) => service.chunks(params.backfill_id, query),
  }),
  ...(['pause', 'resume'] as const).map((change) =>
    route({
      method: 'POST',
      path: `${backfill}/${change}`,
      needs: 'operator',
      query: expectedVersion,
      body: backfillSwitchBody,
      statuses: [202],
      handle: ({ params, query, body, by }) => service[change](params.backfill_id, body, by.name, query.expected_state_version),
    }),
  ),
  route({
    method: 'POST',
    path: `${backfill}/cancel`,
    needs: 'operator',
    query: expectedVersion,
    body: backfillCancelBody,
    statuses: [202],
    handle: ({ params, query, body, by }) => service.cancel(params.backfill_id, body, by.name, query.expected_state_version),
  }),
  route({
    method: 'POST',
    path: `${backfill}/retry-failed`,
    needs: 'operator',
    body: backfillRetryBody,
    statuses: [202],
    handle: ({ params, body, by }) => service.retryFailed(params.backfill_id, body, by.name),
  }),
]
