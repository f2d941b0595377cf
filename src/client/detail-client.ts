import type { DetailApi } from '../api/detail/detail-contract.ts'
import { type Connection, queryText } from './connection.ts'

/** Reads the parts of runs and assets from a server. */
export function detailClient(server: Connection): DetailApi {
  const run = (runId: string): string => `/runs/${encodeURIComponent(runId)}`
  // A key that is the name of a route below has a slash before it.
  const asset = (key: string): string => `/assets/${encodeURIComponent(`/${key}`)}`
  return {
    tasks: (runId, query) => server.json('GET', `${run(runId)}/tasks${queryText(query)}`),
    task: (runId, key) => server.json('GET', `${run(runId)}/tasks/${encodeURIComponent(key)}`),
    logs: (runId, query) => server.json('GET', `${run(runId)}/logs${queryText({ ...query })}`),
    definitions: ({ select, limit, cursor }) => server.json('GET', `/definitions${queryText({ select, limit, cursor })}`),
    definition: (key) => server.json('GET', `${asset(key)}/definition`),
    data: (key, query) => server.json('GET', `${asset(key)}/data${queryText(query)}`),
  }
}
