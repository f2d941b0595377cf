import type { RunsApi } from '../api/run-contract.ts'
import { type Connection, queryText } from './connection.ts'

/** Reads runs from a server, and requests new ones. */
export function runsClient(server: Connection): RunsApi {
  const page: RunsApi['page'] = ({ limit, cursor, status, trigger, asset, since, until }) =>
    server.json('GET', `/runs${queryText({ limit, cursor, status, trigger, asset, since, until })}`)
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
    logs: (runId, { task, attempt }) => server.lines(`${pathOf(runId)}/logs${queryText({ task, attempt })}`),
    follow: (runId, signal) => server.lines(`${pathOf(runId)}/follow`, signal),
  }
}

const pathOf = (runId: string): string => `/runs/${encodeURIComponent(runId)}`
