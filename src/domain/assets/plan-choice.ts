import { nearest } from '../../lib/nearest.ts'
import type { AssetGraph } from './graph.ts'
import { select } from './selection.ts'
import { parseSelection, plainKey } from './selection-parser.ts'

/** What a run shall make: each asset with its partitions, null for the asset as a whole. */
export interface Chosen {
  /** Every chosen asset after those it is made from. */
  readonly order: readonly string[]
  readonly partitions: ReadonlyMap<string, ReadonlySet<string | null>>
}

export interface WorkAskedFor {
  /** Asset keys, `asset[partition]`, or selection expressions: all that any of them means. */
  readonly asset_selection: readonly string[]
  readonly partition_selection: readonly string[] | null
}

/** One partition of one asset, as tasks are named: how a rerun asks for exactly what failed. */
const assetAndPartition = /^([^[\]]+)\[(.+)\]$/s

export function chooseWork(asked: WorkAskedFor, graph: AssetGraph): Chosen | { error: string } {
  const whole = new Set<string>()
  const single = new Map<string, Set<string>>()
  for (const entry of asked.asset_selection) {
    const [, key = entry, partition] = graph.assets.has(entry) ? [] : (assetAndPartition.exec(entry) ?? [])
    if (graph.assets.has(key)) {
      if (partition === undefined) whole.add(key)
      else single.set(key, (single.get(key) ?? new Set<string>()).add(partition))
      continue
    }
    if (partition !== undefined || plainKey(entry) !== undefined) return { error: unknownAsset(key, graph) }
    for (const found of select(parseSelection(entry), graph)) whole.add(found)
  }
  for (const key of single.keys()) {
    if (!graph.assets.get(key)?.partitions) return { error: `${key} has no partitions. Ask for ${key} without a partition.` }
  }
  return settle(asked, graph, whole, single)
}

function settle(
  asked: WorkAskedFor,
  graph: AssetGraph,
  whole: ReadonlySet<string>,
  single: ReadonlyMap<string, ReadonlySet<string>>,
): Chosen | { error: string } {
  const order = graph.order.filter((key) => (whole.has(key) || single.has(key)) && graph.canBeMade(key))
  if (order.length === 0) return { error: nothingToMake(asked, graph, whole) }

  const everything: ReadonlySet<string | null> = new Set([null])
  const asGiven = asked.partition_selection && new Set([...asked.partition_selection].sort())
  const partitions = new Map<string, ReadonlySet<string | null>>()
  for (const key of order) {
    const named = single.get(key) ?? new Set()
    const given = graph.assets.get(key)?.partitions ? (asGiven ?? everything) : everything
    // One set shared by all assets when none is named singly: a thousand assets of a thousand days stay small.
    if (!whole.has(key)) partitions.set(key, named)
    else partitions.set(key, named.size === 0 ? given : new Set([...given, ...named]))
  }
  if (order.every((key) => partitions.get(key)?.size === 0)) {
    return {
      error: `${list(order)} would be made for no partition at all. Name the partitions, or leave them out for the whole asset.`,
    }
  }
  return { order, partitions }
}

function unknownAsset(key: string, graph: AssetGraph): string {
  const meant = nearest(key, graph.assets.keys())
  const suggestion = meant === undefined ? 'Correct the name, or load the project that declares it.' : `Did you mean ${meant}?`
  return `there is no asset ${key}. ${suggestion}`
}

function nothingToMake({ asset_selection }: WorkAskedFor, graph: AssetGraph, selected: ReadonlySet<string>): string {
  const [source] = selected
  if (source !== undefined) {
    const only = selected.size === 1 ? `${source} is a source, which is` : `${list([...selected])} are sources, which are`
    return `${only} made elsewhere. Select what is made of it, for example key:"${source}"+.`
  }
  return graph.assets.size === 0
    ? 'there are no assets. Load a project first.'
    : `${list(asset_selection)} selects none of the ${graph.assets.size} assets. Check keys, tags and groups for spelling.`
}

const SHOWN = 3

function list(names: readonly string[]): string {
  const more = names.length - SHOWN
  return names.slice(0, SHOWN).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
