import { assetKeyOf } from '../asset-routes.ts'
import { lines, pageOr } from '../routing/answer.ts'
import { BASE, type Route, route } from '../routing/route.ts'
import { type LogQuery, type RunLogEntry, type RunsApi, runLogEntry } from '../run-contract.ts'
import {
  type DetailApi,
  dataPage,
  dataQuery,
  definitionPage,
  definitionQuery,
  logPage,
  logPageQuery,
  taskDetail,
  taskPage,
  taskQuery,
  wireDefinition,
} from './detail-contract.ts'
import { followWithLogs } from './follow-with-logs.ts'

const run = `${BASE}/runs/:run_id` as const
const asset = `${BASE}/assets/:key` as const

/** Routes for the parts of runs and assets: tasks, output, declarations, data. */
export const detailRoutes = (service: DetailApi, runs: RunsApi): Route[] => [
  route({
    method: 'GET',
    path: `${run}/tasks`,
    operation: 'listRunTasks',
    summary: 'Lists the tasks of a run by key.',
    needs: 'viewer',
    query: taskQuery,
    answer: taskPage,
    problems: [404, 409],
    handle: ({ params, query }) => service.tasks(params.run_id, query),
  }),
  route({
    method: 'GET',
    path: `${run}/tasks/:task_key`,
    operation: 'getRunTask',
    summary: 'Shows a task with its attempts.',
    needs: 'viewer',
    answer: taskDetail,
    problems: [404, 409],
    handle: ({ params }) => service.task(params.run_id, params.task_key),
  }),
  route({
    method: 'GET',
    path: `${run}/logs`,
    operation: 'getRunLogs',
    summary: 'Shows the lines that its tasks printed: all of them, a page, or until the run ends.',
    needs: 'viewer',
    query: logPageQuery,
    answer: pageOr(logPage, lines(runLogEntry)),
    problems: [404, 409],
    handle: ({ params, query, request, repeated }) => {
      const { limit, cursor, follow, ...which } = query
      if (follow) return printed(runs, params.run_id, which, request.signal)
      const isPage = cursor !== undefined || repeated('limit') !== undefined
      return isPage ? service.logs(params.run_id, { ...which, limit, cursor }) : runs.logs(params.run_id, which)
    },
  }),
  route({
    method: 'GET',
    path: `${BASE}/definitions`,
    operation: 'listDefinitions',
    summary: 'Lists the definitions of assets by key.',
    needs: 'viewer',
    query: definitionQuery,
    answer: definitionPage,
    problems: [404],
    handle: ({ query, repeated }) => service.definitions({ ...query, select: repeated('select') ?? [] }),
  }),
  route({
    method: 'GET',
    path: `${asset}/definition`,
    operation: 'getDefinition',
    summary: 'Shows the definition of an asset.',
    needs: 'viewer',
    answer: wireDefinition,
    problems: [404],
    handle: ({ params }) => service.definition(assetKeyOf(params.key)),
  }),
  route({
    method: 'GET',
    path: `${asset}/data`,
    operation: 'getData',
    summary: 'Shows rows of the current materializations of an asset.',
    needs: 'viewer',
    query: dataQuery,
    answer: dataPage,
    problems: [404, 422],
    // What was made a moment ago is what one wants to see.
    readsFrom: 'tables',
    isFresh: true,
    handle: ({ params, query }) => service.data(assetKeyOf(params.key), query),
  }),
]

/** What a run has printed and prints, a line at a time. */
async function* printed(runs: RunsApi, runId: string, which: LogQuery, signal: AbortSignal): AsyncGenerator<RunLogEntry> {
  for await (const event of followWithLogs(runs, runId, signal, which)) {
    if (event.type !== 'log') continue
    const { task_key, attempt, entries } = event
    for (const entry of entries) yield { ...entry, task_key, attempt }
  }
}
