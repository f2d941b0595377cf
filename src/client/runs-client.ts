import type { RunsApi } from '../api/run-contract.ts'
import { type Connection, queryText } from './connection.ts'
import type { Remote } from './remote.ts'

/** Reads runs from a server, and requests new ones. */
export function runsClient(server: Connection): Remote<RunsApi> {
  const page: Remote<RunsApi>['page'] = (query = {}) => server.json('GET', `/runs${queryText(query)}`)
  return {
    request: (run, user, traceparent) => server.json('POST', '/runs', { body: run, user, traceparent }),
    preview: (run) => server.json('POST', '/runs/preview', { body: run }),
    cancel(runId, user, reason) {
      const body = reason === undefined ? {} : { reason }
      return server.json('POST', `${pathOf(runId)}/cancel`, { body, user })
    },
    rerun: (runId, body, user, traceparent) => server.json('POST', `${pathOf(runId)}/rerun`, { body, user, traceparent }),
    list: async (query) => (await page(query)).runs,
    page,
    get: (runId) => server.json('GET', pathOf(runId)),
    durations: (runId) => server.json('GET', `${pathOf(runId)}/durations`),
    logs: (runId, query) => server.lines(`${pathOf(runId)}/logs${queryText(query)}`),
    follow: (runId, signal) => server.lines(`${pathOf(runId)}/follow`, signal),
  }
}

const pathOf = (runId: string): string => `/runs/${encodeURIComponent(runId)}`
