import { ServoError } from '../../lib/error.ts'
import { type GraphPartitions, taskKey } from '../assets/graph-partitions.ts'
import type { WorkSelection } from './plan-choice.ts'
import { MAX_PARTITIONS_PER_TASK, taskRanges } from './task-ranges.ts'

/** As many as the request of a run can name. */
const MAX_NAMED = 10_000

/** Selections that mean exactly these partitions, with neighbours as one range: `raw[2025-01-01..2025-01-31]`. */
export function exactSelections(chosen: ReadonlyMap<string, Iterable<string>>, partitions: GraphPartitions): string[] {
  return [...chosen].flatMap(([key, keys]) => {
    const set = partitions.of(key)
    if (set.definition === undefined) return [key]
    return taskRanges(set, keys, MAX_PARTITIONS_PER_TASK).map((range) => taskKey(key, range.key))
  })
}

/** The same as the request of a run. */
export function exactWork(chosen: ReadonlyMap<string, Iterable<string>>, partitions: GraphPartitions): WorkSelection {
  const asset_selection = exactSelections(chosen, partitions)
  if (asset_selection.length <= MAX_NAMED) return { asset_selection, partition_selection: null }
  throw new ServoError(
    'invalid',
    'too_many_partitions',
    `the run covers ${asset_selection.length} separate partition ranges; the limit is ${MAX_NAMED}`,
    { hint: 'Request fewer assets or partitions at a time.' },
  )
}
