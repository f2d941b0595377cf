import type { WhyApi } from '../api/automation/why-contract.ts'
import { type Connection, queryText } from './connection.ts'
import type { Remote } from './remote.ts'

/** Asks a server why something ran or did not. */
export function whyClient(server: Connection): Remote<WhyApi> {
  return {
    why: (kind, name, query) => server.json('GET', `/why/${kind}/${encodeURIComponent(name)}${queryText(query)}`),
    conflicts: (query = {}) => server.json('GET', `/conflicts${queryText(query)}`),
  }
}
