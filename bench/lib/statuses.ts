import { assetDefinitions } from '../../src/domain/assets/asset-definitions.table.ts'
import { keysOfAsset } from '../../src/domain/assets/former-keys.ts'
import { dataVersions } from '../../src/domain/partitions/data-versions.table.ts'
import { partitionStatus } from '../../src/domain/partitions/partition-status.table.ts'
import { storedValues } from '../../src/domain/partitions/stored-values.table.ts'
import { CurrentGraph } from '../../src/server/leader/current-graph.ts'
import type { Readable } from '../../src/server/leader/durable-state.ts'
import { coldRowsOf } from '../../src/server/workspace/knowledge.ts'
import { Statuses } from '../../src/server/workspace/status/statuses.ts'

/** Statuses over whatever holds a state, as a server has them. */
export function statusesOver(of: Readable): Statuses {
  const graph = new CurrentGraph(() => of.state, Date.now)
  return new Statuses({
    graph: () => graph.get(),
    partitions: () => graph.partitions(),
    rows: () => coldRowsOf(of, partitionStatus),
    versions: () => coldRowsOf(of, dataVersions),
    values: () => coldRowsOf(of, storedValues),
    now: Date.now,
    keysOf: (key) => keysOfAsset(of.state, key),
    recorded: (key) => of.state.hot(assetDefinitions).get(key),
  })
}
