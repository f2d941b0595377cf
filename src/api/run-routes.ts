import { z } from 'zod'
import { runStates } from '../domain/runs/runs.table.ts'
import { triggerTypes } from '../domain/runs/trigger.ts'
import { traceparentOf } from '../lib/traceparent.ts'
import { id, timestamp } from '../model/envelope.ts'
import { lines } from './routing/ndjson.ts'
import { BASE, type Route, route } from './routing/route.ts'
import { cancelBody, newRunBody, previewBody, type RunsApi, rerunBody } from './run-contract.ts'

const listQuery = z.object({
  limit: z.coerce.number().int().min(1).max(1_000).default(20),
  cursor: z.string().max(2_048).optional(),
  state: z.enum(runStates).optional(),
  trigger: z.enum(triggerTypes).optional(),
  asset: id.optional(),
  since: timestamp.optional(),
  until: timestamp.optional(),
})

const runs = `${BASE}/runs` as const
const run = `${runs}/:run_id` as const

/** Routes for runs: request, list, show, follow, cancel and rerun. */
export const runRoutes = (service: RunsApi): Route[] => [
  route({
    method: 'POST',
    path: runs,
    needs: 'operator',
    body: newRunBody,
    statuses: [202],
    handle: ({ body, by, request }) => service.request(body, by.name, traceparentOf(request.headers.get('traceparent'))),
  }),
  // It records nothing.
  route({
    method: 'POST',
    path: `${runs}/preview`,
    needs: 'viewer',
    body: previewBody,
    handle: ({ body }) => service.preview(body),
  }),
  route({ method: 'GET', path: runs, needs: 'viewer', query: listQuery, handle: ({ query }) => service.page(query) }),
  route({ method: 'GET', path: run, needs: 'viewer', handle: ({ params }) => service.get(params.run_id) }),
  route({
    method: 'POST',
    path: `${run}/cancel`,
    needs: 'operator',
    body: cancelBody,
    statuses: [202],
    handle: ({ params, body, by }) => service.cancel(params.run_id, by.name, body.reason),
  }),
  route({
    method: 'POST',
    path: `${run}/rerun`,
    needs: 'operator',
    body: rerunBody,
    statuses: [202],
    handle: ({ params, body, by, request }) =>
      service.rerun(params.run_id, body, by.name, traceparentOf(request.headers.get('traceparent'))),
  }),
  route({
    method: 'GET',
    path: `${run}/durations`,
    needs: 'viewer',
    handle: ({ params }) => service.durations(params.run_id),
  }),
  route({
    method: 'GET',
    path: `${run}/follow`,
    needs: 'viewer',
    handle: ({ params, request }) => lines(service.follow(params.run_id, request.signal)),
  }),
]
