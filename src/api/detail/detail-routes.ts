import { assetKeyOf } from '../asset-routes.ts'
import { lines } from '../routing/ndjson.ts'
import { BASE, type Route, route } from '../routing/route.ts'
import type { RunsApi } from '../run-contract.ts'
import { type DetailApi, dataQuery, definitionQuery, logQuery, taskQuery } from './detail-contract.ts'
import { followWithLogs } from './follow-with-logs.ts'

const run = `${BASE}/runs/:run_id` as const
const asset = `${BASE}/assets/:key` as const

/** Routes for the parts of runs and assets: tasks, output, declarations, data. */
export const detailRoutes = (service: DetailApi, runs: RunsApi): Route[] => [
  route({
    method: 'GET',
    path: `${run}/tasks`,
    needs: 'viewer',
    query: taskQuery,
    handle: ({ params, query }) => service.tasks(params.run_id, query),
  }),
  route({
    method: 'GET',
    path: `${run}/tasks/:task_key`,
    needs: 'viewer',
    handle: ({ params }) => service.task(params.run_id, params.task_key),
  }),
  route({
    method: 'GET',
    path: `${run}/logs`,
    needs: 'viewer',
    query: logQuery,
    handle: ({ params, query, request }) => {
      const { limit, cursor, follow, ...which } = query
      if (follow) return lines(printed(runs, params.run_id, which, request.signal))
      if (limit === undefined && cursor === undefined) return lines(runs.logs(params.run_id, which))
      return service.logs(params.run_id, { ...which, limit: limit ?? DEFAULT_LINES, cursor })
    },
  }),
  route({
    method: 'GET',
    path: `${BASE}/definitions`,
    needs: 'viewer',
    query: definitionQuery,
    handle: ({ query, repeated }) => service.definitions({ ...query, select: repeated('select') ?? [] }),
  }),
  route({
    method: 'GET',
    path: `${asset}/definition`,
    needs: 'viewer',
    handle: ({ params }) => service.definition(assetKeyOf(params.key)),
  }),
  route({
    method: 'GET',
    path: `${asset}/data`,
    needs: 'viewer',
    query: dataQuery,
    // What was made a moment ago is what one wants to see.
    readsFrom: 'tables',
    isFresh: true,
    handle: ({ params, query }) => service.data(assetKeyOf(params.key), query),
  }),
]

const DEFAULT_LINES = 50

/** What a run has printed and prints, a line at a time. */
async function* printed(
  runs: RunsApi,
  runId: string,
  which: { task?: string | undefined; attempt?: number | undefined },
  signal: AbortSignal,
): AsyncGenerator<unknown> {
  for await (const event of followWithLogs(runs, runId, signal, which)) {
    if (event.type !== 'log') continue
    const { task_key, attempt, entries } = event
    for (const entry of entries) yield { ...entry, task_key, attempt }
  }
}
