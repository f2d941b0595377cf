import { assetDefinitions } from '../../src/domain/assets/asset-definitions.table.ts'
import { keysOfAsset } from '../../src/domain/assets/former-keys.ts'
import { partitionStatus } from '../../src/domain/partitions/partition-status.table.ts'
import type { State } from '../../src/engine/fold/state.ts'
import type { ColdRowsToRead } from '../../src/engine/sorted/cold-store.ts'
import type { Table } from '../../src/model/table.ts'
import { CurrentGraph } from '../../src/server/leader/current-graph.ts'
import { Statuses } from '../../src/server/workspace/status/statuses.ts'

/** Statuses over whatever holds a state, as a server has them. */
export function statusesOver(of: { readonly state: State; coldRows(table: Table): ColdRowsToRead }): Statuses {
  const graph = new CurrentGraph(() => of.state, Date.now)
  return new Statuses({
    graph: () => graph.get(),
    partitions: () => graph.partitions(),
    rows: () => of.coldRows(partitionStatus),
    now: Date.now,
    keysOf: (key) => keysOfAsset(of.state, key),
    recorded: (key) => of.state.hot(assetDefinitions).get(key),
  })
}
