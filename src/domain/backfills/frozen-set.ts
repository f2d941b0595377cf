import { assert } from '../../lib/assert.ts'
import { itemAt } from '../../lib/collections/item-at.ts'
import type { Rows } from '../../model/rows.ts'
import { unpackSet } from '../../partitions/packed-set.ts'
import { type PartitionSet, partitionSet } from '../../partitions/partition-set.ts'
import { intersection, type Spans, slice, union } from '../../partitions/spans.ts'
import type { GraphMappings } from '../assets/graph-mappings.ts'
import { GraphPartitions } from '../assets/graph-partitions.ts'
import { dynamicKeysOf } from '../partitions/dynamic-keys.ts'
import type { RunRow } from '../runs/runs.table.ts'
import { backfillAssets } from './backfill-assets.table.ts'
import { type BackfillRow, backfills, type Stage } from './backfills.table.ts'

type Backfill = Pick<BackfillRow, 'backfill_id' | 'stages' | 'newest_first' | 'as_of' | 'dynamic_keys'>

export const chunksOf = ({ positions, chunk_size }: Stage): number => Math.ceil(positions / chunk_size)

/** The stage of a chunk, and its place in it. */
export function placeOfChunk({ stages }: Pick<Backfill, 'stages'>, index: number): { stage: Stage; within: number } {
  let before = 0
  for (const stage of stages) {
    const chunks = chunksOf(stage)
    if (index < before + chunks) return { stage, within: index - before }
    before += chunks
  }
  throw new RangeError(`there is no chunk ${index} among ${before}`)
}

/** Unions of the positions of several assets: computed once for each stage. */
const unions = new WeakMap<Stage, Spans>()

function positionsOfStage(rows: Rows, backfill: Backfill, stage: Stage): Spans {
  const { assets } = stage
  if (assets.length === 1) return positionsOfAsset(rows, backfill, itemAt(assets, 0))
  let known = unions.get(stage)
  if (known === undefined) {
    known = union(assets.map((key) => positionsOfAsset(rows, backfill, key)))
    unions.set(stage, known)
  }
  return known
}

export function positionsOfAsset(rows: Rows, { backfill_id }: Pick<Backfill, 'backfill_id'>, asset: string): Spans {
  const row = rows.hot(backfillAssets).get(backfill_id, asset)
  assert(row !== undefined, `${asset} belongs to ${backfill_id}`)
  return unpackSet(row.positions)
}

/** The positions of a chunk. They follow from its number, so no chunk is ever stored before it is planned. */
export function positionsOfChunk(rows: Rows, backfill: Backfill, index: number): Spans {
  const { stage, within } = placeOfChunk(backfill, index)
  const { chunk_size: size, positions: count } = stage
  const all = positionsOfStage(rows, backfill, stage)
  if (!backfill.newest_first) return slice(all, within * size, (within + 1) * size)
  const to = count - within * size
  return slice(all, to - size, to)
}

/** The same by asset: a stage may be asked for other partitions of each. */
export function pairsOfChunk(rows: Rows, backfill: Backfill, index: number): ReadonlyMap<string, Spans> {
  const { stage } = placeOfChunk(backfill, index)
  const chunk = positionsOfChunk(rows, backfill, index)
  if (stage.assets.length === 1) return new Map([[itemAt(stage.assets, 0), chunk]])
  return new Map(stage.assets.map((key) => [key, intersection(chunk, positionsOfAsset(rows, backfill, key))]))
}

const sets = new WeakMap<Stage, PartitionSet>()

/** The partitions of the assets of a stage as they were when the backfill was created. */
export function setOfStage({ as_of, dynamic_keys }: Pick<Backfill, 'as_of' | 'dynamic_keys'>, stage: Stage): PartitionSet {
  let set = sets.get(stage)
  if (set === undefined) {
    const dynamicKeys = (name: string): readonly string[] => dynamic_keys?.[name] ?? []
    set = partitionSet(stage.partitions ?? undefined, { nowMs: as_of, dynamicKeys })
    sets.set(stage, set)
  }
  return set
}

/** The partitions of the whole graph at the moment of the backfill, with the keys that dynamic sets had then. */
export function partitionsOfBackfill(
  rows: Rows,
  { as_of, dynamic_keys }: Pick<Backfill, 'as_of' | 'dynamic_keys'>,
  mappings: GraphMappings,
): GraphPartitions {
  const now = dynamicKeysOf(rows)
  return new GraphPartitions(mappings, { nowMs: as_of, dynamicKeys: (name) => dynamic_keys?.[name] ?? now(name) })
}

/** The run of a chunk is planned, and its tasks read, what there was when its backfill was created; undefined for any other run. */
export function partitionsOfChunkRun(
  rows: Rows,
  { trigger_type, trigger_source_ref: source }: Readonly<Pick<RunRow, 'trigger_type' | 'trigger_source_ref'>>,
  mappings: GraphMappings,
): GraphPartitions | undefined {
  if (trigger_type !== 'backfill' || source.type !== 'backfill') return undefined
  const backfill = rows.hot(backfills).get(source.backfill_id)
  return backfill && partitionsOfBackfill(rows, backfill, mappings)
}
