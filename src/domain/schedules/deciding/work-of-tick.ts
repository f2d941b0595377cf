import { isServoError } from '../../../lib/error.ts'
import { writeKey } from '../../../partitions/key.ts'
import type { PartitionSet } from '../../../partitions/partition-set.ts'
import type { AssetGraph } from '../../assets/graph.ts'
import type { GraphPartitions } from '../../assets/graph-partitions.ts'
import { chooseWork, type WorkSelection } from '../../planning/plan-choice.ts'
import { selectedAssets } from '../../selection/selected-assets.ts'
import type { ScheduleRow } from '../schedule-definitions.table.ts'

/** The assets of a project, and their partitions as they were at the moment of a tick. */
export interface GraphAtTick {
  readonly graph: AssetGraph
  readonly partitions: GraphPartitions
}

export type WorkOfTick = { readonly work: WorkSelection } | { readonly noWindow: string } | { readonly error: string }

/** What a tick asks for: what the schedule selects and, where that is made in windows of time, the window that has just closed. */
export function workOfTick(definition: Readonly<ScheduleRow>, { graph, partitions }: GraphAtTick): WorkOfTick {
  const { asset_selection } = definition
  try {
    const partition_selection = definition.partition_selection ?? closedWindow(definition, { graph, partitions })
    if (partition_selection === 'none yet') return { noWindow: noWindow(definition) }
    const work = { asset_selection, partition_selection }
    const chosen = chooseWork(work, graph, partitions)
    return 'error' in chosen ? chosen : { work }
  } catch (error) {
    if (!isServoError(error)) throw error
    return { error: error.hint === undefined ? error.message : `${error.message}. ${error.hint}` }
  }
}

/** Whether what a schedule selects is made in partitions. */
export function selectsPartitions(
  { asset_selection }: Pick<ScheduleRow, 'asset_selection'>,
  { graph, partitions }: GraphAtTick,
): boolean {
  try {
    return selectedAssets(graph, asset_selection).some((key) => partitions.of(key).definition !== undefined)
  } catch {
    return false
  }
}

/** How many missed ticks run at most. */
export const catchupLimit = (definition: Readonly<ScheduleRow>, at: GraphAtTick): number =>
  definition.max_catchup_ticks ?? (selectsPartitions(definition, at) ? 3 : 1)

function closedWindow(
  { asset_selection, partition_offset }: Readonly<ScheduleRow>,
  { graph, partitions }: GraphAtTick,
): readonly string[] | null | 'none yet' {
  const sets = new Set(selectedAssets(graph, asset_selection).map((key) => partitions.of(key)))
  const parted = [...sets].filter((set) => set.definition !== undefined)
  if (parted.length === 0) return null
  const timed = parted.flatMap((set) => {
    const windows = windowsOf(set)
    return windows === undefined ? [] : [windows]
  })
  if (timed.length === 0) return ['*']
  const open = timed.filter(({ set }) => set.count > partition_offset)
  const shortest = open.reduce<Windows | undefined>(
    (best, each) => (best === undefined || lengthOf(each) < lengthOf(best) ? each : best),
    undefined,
  )
  if (shortest === undefined) return 'none yet'
  const key = shortest.set.at(shortest.set.count - 1 - partition_offset)
  return [shortest.dimension === undefined ? key : writeKey({ [shortest.dimension]: key })]
}

interface Windows {
  readonly set: PartitionSet
  readonly dimension?: string
}

function windowsOf(set: PartitionSet): Windows | undefined {
  if (set.axis !== undefined) return { set }
  const dimension = set.dimensions.find((one) => one.set.axis !== undefined)
  return dimension && { set: dimension.set, dimension: dimension.name }
}

/** How long the last window is. */
function lengthOf({ set }: Windows): number {
  const last = set.axis?.at(set.count - 1)
  return last === undefined ? Number.POSITIVE_INFINITY : last.endMs - last.startMs
}

const noWindow = ({ asset_selection, partition_offset }: Readonly<ScheduleRow>): string =>
  `no window of ${asset_selection.slice(0, 3).join(', ')} had closed${partition_offset === 0 ? '' : ` ${partition_offset} before`}`
