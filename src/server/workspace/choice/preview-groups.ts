import type { PreviewGroup, PreviewTask } from '../../../api/run-contract.ts'
import type { GraphPartitions } from '../../../domain/assets/graph-partitions.ts'
import { exactSelections } from '../../../domain/planning/exact-work.ts'

/** Puts the tasks of an asset together that have the same reasons, in the order of the tasks. */
export function previewGroups(
  tasks: readonly (PreviewTask & { readonly keys: readonly string[] })[],
  partitions: GraphPartitions,
): PreviewGroup[] {
  const groups = Map.groupBy(tasks, ({ asset_key, reasons }) => [asset_key, ...reasons].join('\0'))
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    if (first === undefined) return []
    const { asset_key, reasons } = first
    const keys = group.flatMap((task) => task.keys)
    return [{ asset_key, selections: exactSelections(new Map([[asset_key, keys]]), partitions), tasks: group.length, reasons }]
  })
}
