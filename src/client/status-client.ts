import type { PartitionSummary, StatusApi } from '../api/status-contract.ts'
import { type Connection, queryText } from './connection.ts'
import type { Remote } from './remote.ts'

/** Reads the status of partitions from a server. */
export function statusClient(server: Connection): Remote<StatusApi> {
  return {
    list: (query = {}) => server.json('GET', `/partitions${queryText(query)}`),
    stale: (query = {}) => server.json('GET', `/partitions/stale${queryText(query)}`),
    async summaries(select) {
      const path = `/partitions/summary${queryText({ select })}`
      return (await server.json<{ assets: PartitionSummary[] }>('GET', path)).assets
    },
    why: (assetKey, partition) => server.json('GET', `/assets/${encodeURIComponent(assetKey)}/why${queryText({ partition })}`),
  }
}
