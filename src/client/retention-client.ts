import type { RetentionApi } from '../api/retention-contract.ts'
import type { Connection } from './connection.ts'
import type { Remote } from './remote.ts'

/** Has a server remove stored values. */
export function retentionClient(server: Connection): Remote<RetentionApi> {
  return {
    storage: () => server.json('GET', '/storage'),
    collect: (body, user) => server.json('POST', '/retention/collect', { body, user }),
    purge: (assetKey, body, user) => server.json('POST', `/assets/${encodeURIComponent(assetKey)}/purge`, { body, user }),
  }
}
