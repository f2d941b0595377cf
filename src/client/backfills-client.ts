import type { BackfillsApi } from '../api/automation/backfill-contract.ts'
import { type Connection, queryText } from './connection.ts'
import type { Remote } from './remote.ts'

/** Asks a server about its backfills, and tells it what to do with them. */
export function backfillsClient(server: Connection): Remote<BackfillsApi> {
  const at = (id: string, more = ''): string => `/backfills/${encodeURIComponent(id)}${more}`
  const expecting = (expected: number | undefined): string => queryText({ expected_state_version: expected })
  return {
    preview: (body) => server.json('POST', '/backfills/preview', { body }),
    create: (body, user) => server.json('POST', '/backfills', { body, user }),
    list: (query = {}) => server.json('GET', `/backfills${queryText(query)}`),
    get: (id) => server.json('GET', at(id)),
    chunks: (id, query = {}) => server.json('GET', at(id, `/chunks${queryText(query)}`)),
    update: (id, body, user, expected) => server.json('PATCH', at(id, expecting(expected)), { body, user }),
    pause: (id, body, user, expected) => server.json('POST', at(id, `/pause${expecting(expected)}`), { body, user }),
    resume: (id, body, user, expected) => server.json('POST', at(id, `/resume${expecting(expected)}`), { body, user }),
    cancel: (id, body, user, expected) => server.json('POST', at(id, `/cancel${expecting(expected)}`), { body, user }),
    retryFailed: (id, body, user) => server.json('POST', at(id, '/retry-failed'), { body, user }),
  }
}
