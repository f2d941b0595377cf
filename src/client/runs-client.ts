import type { RunsApi, RunWithAsker } from '../api/run-contract.ts'
import { type Connection, queryText } from './connection.ts'

/** Reads runs from a server, and requests new ones. */
export function runsClient(server: Connection): RunsApi {
  return {
    request: (run, user, traceparent) => server.json('POST', '/runs', { body: run, user, traceparent }),
    preview: (run) => server.json('POST', '/runs/preview', { body: run }),
    cancel(runId, user, reason) {
      const body = reason === undefined ? {} : { reason }
      return server.json('POST', `${pathOf(runId)}/cancel`, { body, user })
    },
    rerun: (runId, body, user, traceparent) => server.json('POST', `${pathOf(runId)}/rerun`, { body, user, traceparent }),
    async list({ limit, state, asset, since, until }) {
      const query = queryText({ limit, state, asset, since, until })
      return (await server.json<{ runs: RunWithAsker[] }>('GET', `/runs${query}`)).runs
    },
    get: (runId) => server.json('GET', pathOf(runId)),
    durations: (runId) => server.json('GET', `${pathOf(runId)}/durations`),
    logs: (runId, { task, attempt }) => server.lines(`${pathOf(runId)}/logs${queryText({ task, attempt })}`),
    follow: (runId, signal) => server.lines(`${pathOf(runId)}/follow`, signal),
  }
}

const pathOf = (runId: string): string => `/runs/${encodeURIComponent(runId)}`
