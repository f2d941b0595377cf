import type { DetailApi } from '../api/detail/detail-contract.ts'
import { type Connection, queryText } from './connection.ts'
import type { Remote } from './remote.ts'

/** The key of a task is no name of a user, although it comes last. */
export type RemoteDetail = Remote<Omit<DetailApi, 'task'>> & Pick<DetailApi, 'task'>

/** Reads the parts of runs and assets from a server. */
export function detailClient(server: Connection): RemoteDetail {
  const run = (runId: string): string => `/runs/${encodeURIComponent(runId)}`
  // A key that is the name of a route below has a slash before it.
  const asset = (key: string): string => `/assets/${encodeURIComponent(`/${key}`)}`
  return {
    tasks: (runId, query = {}) => server.json('GET', `${run(runId)}/tasks${queryText(query)}`),
    task: (runId, key) => server.json('GET', `${run(runId)}/tasks/${encodeURIComponent(key)}`),
    // Without a limit the answer would be all of it, and no page.
    logs: (runId, { limit = 50, ...query } = {}) => server.json('GET', `${run(runId)}/logs${queryText({ ...query, limit })}`),
    definitions: ({ select, limit, cursor } = {}) => server.json('GET', `/definitions${queryText({ select, limit, cursor })}`),
    definition: (key) => server.json('GET', `${asset(key)}/definition`),
    data: (key, query = {}) => server.json('GET', `${asset(key)}/data${queryText(query)}`),
  }
}
