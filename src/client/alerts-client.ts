import type { AlertsApi } from '../api/alerts/alert-contract.ts'
import { type Connection, queryText } from './connection.ts'
import type { Remote } from './remote.ts'

/** Asks a server about its alerts. */
export function alertsClient(server: Connection): Remote<AlertsApi> {
  return {
    list: (query = {}) => server.json('GET', `/alerts${queryText(query)}`),
    get: (alertId) => server.json('GET', `/alerts/${encodeURIComponent(alertId)}`),
    targets: () => server.json('GET', '/alerts/targets'),
    test: (body, user) => server.json('POST', '/alerts/test', { body, user }),
  }
}
