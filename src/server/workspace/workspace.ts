import type { AssetsApi } from '../../api/asset-contract.ts'
import type { RunsApi } from '../../api/run-contract.ts'
import type { StatusApi } from '../../api/status-contract.ts'
import { assetDefinitions } from '../../domain/assets/asset-definitions.table.ts'
import { keysOfAsset } from '../../domain/assets/former-keys.ts'
import { partitionStatus } from '../../domain/partitions/partition-status.table.ts'
import type { TenantSecret } from '../../domain/runs/identity.ts'
import { Paths } from '../../engine/paths.ts'
import { assetsApi } from './assets-api.ts'
import type { Knowledge } from './knowledge.ts'
import { RunReader } from './run-reader.ts'
import { Runs } from './runs.ts'
import { type Live, runsApi } from './runs-api.ts'
import type { StatusSource } from './status/current-staleness.ts'
import { Statuses } from './status/statuses.ts'

/** Everything that can be asked of a workspace and told to it, by a route, a command or a page. */
export interface WorkspaceApi {
  readonly runs: RunsApi
  readonly assets: AssetsApi
  readonly statuses: StatusApi
}

export interface WorkspaceOptions {
  /** Makes the ids of runs. */
  readonly runIds: () => TenantSecret
  readonly live?: Live
}

export function workspaceApi(known: Knowledge, { runIds, live }: WorkspaceOptions): WorkspaceApi {
  const reader = new RunReader(() => known.rows(), known.sql)
  const { scope, store, mintId } = known
  const runs = new Runs({ known, reader, scope, secret: runIds, mintId })
  return {
    runs: runsApi({ runs, reader, live, store, paths: new Paths(scope) }),
    assets: assetsApi(known),
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
