import type { AssetsApi } from '../../api/asset-contract.ts'
import type { RunsApi } from '../../api/run-contract.ts'
import type { StatusApi } from '../../api/status-contract.ts'
import { assetDefinitions } from '../../domain/assets/asset-definitions.table.ts'
import { keysOfAsset } from '../../domain/assets/former-keys.ts'
import { partitionStatus } from '../../domain/partitions/partition-status.table.ts'
import { Assets } from './assets.ts'
import type { Knowledge } from './knowledge.ts'
import { Runs, type RunsOptions } from './runs.ts'
import type { StatusSource } from './status/current-staleness.ts'
import { Statuses } from './status/statuses.ts'

/** Everything that can be asked of a workspace and told to it, by a route, a command or a page. */
export interface WorkspaceApi {
  readonly runs: RunsApi
  readonly assets: AssetsApi
  readonly statuses: StatusApi
}

export function workspaceApi(known: Knowledge, options: RunsOptions): WorkspaceApi {
  return {
    runs: new Runs(known, options),
    assets: new Assets(known),
    statuses: new Statuses(statusSource(known)),
  }
}

function statusSource(known: Knowledge): StatusSource {
  return {
    graph: () => known.graph.get(),
    partitions: () => known.graph.partitions(),
    rows: () => known.coldRows(partitionStatus),
    now: known.now,
    keysOf: (key) => keysOfAsset(known.rows(), key),
    recorded: (key) => known.rows().hot(assetDefinitions).get(key),
  }
}
