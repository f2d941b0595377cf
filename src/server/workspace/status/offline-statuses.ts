import type { StatusApi } from '../../../api/status-contract.ts'
import { assetDefinitions } from '../../../domain/assets/asset-definitions.table.ts'
import { keysOfAsset } from '../../../domain/assets/former-keys.ts'
import { partitionStatus } from '../../../domain/partitions/partition-status.table.ts'
import { systemClock } from '../../../ports/clock.ts'
import { CurrentGraph } from '../../leader/current-graph.ts'
import { openOffline } from '../offline-state.ts'
import { Statuses } from './statuses.ts'

/** The status of partitions while no server runs. */
export async function offlineStatuses(servoDir: string): Promise<StatusApi> {
  const { coldRows, state } = await openOffline(servoDir)
  const graph = new CurrentGraph(() => state, systemClock.now)
  return new Statuses({
    graph: () => graph.get(),
    partitions: () => graph.partitions(),
    rows: () => coldRows(partitionStatus),
    now: systemClock.now,
    keysOf: (key) => keysOfAsset(state, key),
    recorded: (key) => state.hot(assetDefinitions).get(key),
  })
}
