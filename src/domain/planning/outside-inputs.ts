import { keysOf } from '../../partitions/key-list.ts'
import { takesSame } from '../../partitions/mappings/takes-many.ts'
import type { AssetGraph } from '../assets/graph.ts'
import { type GraphPartitions, taskKey } from '../assets/graph-partitions.ts'
import type { ChosenWork } from './plan-choice.ts'

/** The assets that read a partition, each with the first of its tasks that does. */
export type Readers = ReadonlyMap<string, string>
/** Partitions by upstream asset, each with its readers. The empty text is the key of an asset without partitions. */
export type NeededInputs = ReadonlyMap<string, ReadonlyMap<string, Readers>>

/** Whoever asked still waits for an answer. What lies behind this many is found out when its task begins. */
const MAX_LOOKED_AT = 200_000

/**
 * What the chosen work reads and does not make itself, by upstream asset: it must exist already. Sources are made elsewhere, so they
 * are not among it. Throws when an upstream partition can never exist.
 */
export function inputsOutside(
  { order, partitions: chosen }: ChosenWork,
  graph: AssetGraph,
  partitions: GraphPartitions,
): NeededInputs {
  const outside = new Map<string, Map<string, Map<string, string>>>()
  let lookedAt = 0
  for (const key of order) {
    const made = chosen.get(key) ?? new Set<string>()
    for (const { asset_key: upstream, mapping: said } of Object.values(graph.definition(key).inputs)) {
      if (!graph.canBeMade(upstream)) continue
      const madeAbove = chosen.get(upstream)
      const need = (partition: string, by: string): void => {
        if (madeAbove?.has(partition)) return
        const needed = outside.get(upstream) ?? new Map<string, Map<string, string>>()
        outside.set(upstream, needed)
        const readers = needed.get(partition) ?? new Map<string, string>()
        needed.set(partition, readers)
        if (!readers.has(key)) readers.set(key, taskKey(key, by))
      }
      if (partitions.of(upstream).definition === undefined) {
        const [first] = made
        if (first !== undefined) need('', first)
        continue
      }
      const mapping = partitions.mapping(key, upstream, said)
      for (const partition of made) {
        for (const range of partitions.neededBy(key, { upstream, mapping }, partition)) {
          lookedAt += range.count
          if (lookedAt > MAX_LOOKED_AT) return outside
          for (const each of keysOf(range)) need(each, partition)
        }
        if (takesSame(mapping)) break
      }
    }
  }
  return outside
}
