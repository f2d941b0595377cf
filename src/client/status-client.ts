import type { PartitionPage, PartitionSummary, StatusApi, Why } from '../api/status-contract.ts'
import { queryText } from './connection.ts'

/** Asks a server about the status of partitions. */
export function statusClient(get: (path: string) => Promise<unknown>): StatusApi {
  return {
    list: async (query) => (await get(`/partitions${queryText(query)}`)) as PartitionPage,
    stale: async (query) => (await get(`/partitions/stale${queryText(query)}`)) as PartitionPage,
    summaries: async (select) =>
      ((await get(`/partitions/summary${queryText({ select })}`)) as { assets: PartitionSummary[] }).assets,
    why: async (assetKey, partition) =>
      (await get(`/assets/${encodeURIComponent(assetKey)}/why${queryText({ partition })}`)) as Why,
  }
}
