import { nearest } from '../../lib/nearest.ts'
import { counted } from '../../lib/text/counted.ts'
import type { AssetGraph } from '../assets/graph.ts'
import type { GraphPartitions } from '../assets/graph-partitions.ts'
import { parseSelection, plainKey } from '../selection/parser.ts'
import { select } from '../selection/selection.ts'
import { namedOf } from './partitions-of-asset.ts'
import { addAll, partitionsOfRun } from './partitions-of-run.ts'

/** The assets that a run makes, each with its partitions. The empty text stands for an asset as a whole. */
export interface ChosenWork {
  /** Every chosen asset after those it is made from. */
  readonly order: readonly string[]
  readonly partitions: ReadonlyMap<string, ReadonlySet<string>>
}

export interface WorkSelection {
  /** Asset keys, `asset[partition]`, or selection expressions; the run has the assets of all of them. */
  readonly asset_selection: readonly string[]
  readonly partition_selection: readonly string[] | null
}

/** One partition of one asset, as tasks are named: how a rerun asks for exactly what failed. */
const assetAndPartition = /^([^[\]]+)\[(.+)\]$/s

export function chooseWork(
  asked: WorkSelection,
  graph: AssetGraph,
  partitions: GraphPartitions,
): ChosenWork | { error: string } {
  const whole = new Set<string>()
  const single = new Map<string, Set<string>>()
  for (const entry of asked.asset_selection) {
    const [, key = entry, partition] = graph.assets.has(entry) ? [] : (assetAndPartition.exec(entry) ?? [])
    if (graph.assets.has(key)) {
      if (partition === undefined) whole.add(key)
      else if (partitions.of(key).definition === undefined)
        return { error: `${key} has no partitions. Request ${key} without a partition.` }
      else single.set(key, addAll(single.get(key) ?? new Set<string>(), namedOf(key, partitions.of(key), partition)))
      continue
    }
    if (partition !== undefined || plainKey(entry) !== undefined) return { error: unknownAsset(key, graph) }
    for (const found of select(parseSelection(entry), graph)) whole.add(found)
  }
  const order = graph.order.filter((key) => (whole.has(key) || single.has(key)) && graph.canBeMade(key))
  if (order.length === 0) return { error: nothingToMake(asked, graph, whole) }

  const shared = partitionsOfRun(
    order.filter((key) => whole.has(key)),
    asked.partition_selection,
    partitions,
  )
  const chosen = new Map<string, ReadonlySet<string>>()
  for (const key of order) {
    const named = single.get(key)
    const given = shared.get(key)
    chosen.set(key, given && named ? new Set([...given, ...named]) : (given ?? named ?? new Set()))
  }
  return { order, partitions: chosen }
}

function unknownAsset(key: string, graph: AssetGraph): string {
  const meant = nearest(key, graph.assets.keys())
  const suggestion = meant === undefined ? 'Run servo assets list to see all assets.' : `Did you mean ${meant}?`
  return `asset ${key} not found. ${suggestion}`
}

function nothingToMake({ asset_selection }: WorkSelection, graph: AssetGraph, selected: ReadonlySet<string>): string {
  const [source] = selected
  if (source !== undefined) {
    const only = selected.size === 1 ? `${source} is a source, which is` : `${list([...selected])} are sources, which are`
    return `${only} materialized elsewhere. Select its downstream assets, for example key:"${source}"+.`
  }
  return graph.assets.size === 0
    ? 'the project has no assets. Declare one, or load another project.'
    : `${list(asset_selection)} selects no asset; the project has ${counted(graph.assets.size, 'asset')}. Check keys, tags and groups for spelling.`
}

const SHOWN_ASSETS = 3

function list(names: readonly string[]): string {
  const more = names.length - SHOWN_ASSETS
  return names.slice(0, SHOWN_ASSETS).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
