import type { AssetGraph } from '../assets/graph.ts'
import { taskKey } from '../assets/graph-partitions.ts'
import { parseSelection } from '../selection/parser.ts'
import { select } from '../selection/selection.ts'
import type { TaskRow } from '../tasks/tasks.table.ts'
import type { WorkSelection } from './plan-choice.ts'

export interface AssetPartition {
  readonly asset_key: string
  /** Null for the asset as a whole. */
  readonly partition_key: string | null
}

/** `from_failure`: every task that did not succeed, tried or not. `subset`: the selection by today's graph, limited to tasks of the run. */
export type RerunMode =
  | { readonly mode: 'from_failure' | 'all' }
  | { readonly mode: 'subset'; readonly selection: string; readonly graph: AssetGraph }

type OldTask = Pick<TaskRow, 'asset_key' | 'partition_key' | 'state'>

/** The tasks of an earlier run to run again. Throws when the selection of a subset cannot be read. */
export function rerunSelection(tasks: Iterable<OldTask>, rerun: RerunMode): AssetPartition[] {
  const subset = rerun.mode === 'subset' ? select(parseSelection(rerun.selection), rerun.graph) : undefined
  const chosen: AssetPartition[] = []
  for (const { asset_key, partition_key, state } of tasks) {
    if (asset_key === null) continue
    if (rerun.mode === 'from_failure' && state === 'SUCCEEDED') continue
    if (subset !== undefined && !subset.has(asset_key)) continue
    chosen.push({ asset_key, partition_key })
  }
  return chosen
}

/** These tasks as the selection of a run: exactly these pairs, and not every asset with every partition. */
export function workFor(pairs: readonly AssetPartition[]): WorkSelection {
  return {
    asset_selection: pairs.map(({ asset_key, partition_key }) => taskKey(asset_key, partition_key)).sort(),
    partition_selection: null,
  }
}
