import { z } from 'zod'
import { ServoError } from '../../../lib/error.ts'
import { packSet } from '../../../partitions/packed-set.ts'
import { type Spans, union } from '../../../partitions/spans.ts'
import type { AssetGraph } from '../../assets/graph.ts'
import type { GraphPartitions } from '../../assets/graph-partitions.ts'
import { staleLink } from '../../partitions/stale-links.ts'
import type { NewBackfill } from '../backfill-created.event.ts'
import type { ChosenPositions } from './asked-positions.ts'
import { refuseTooMany, tooScattered } from './too-many.ts'

type StagePayload = NewBackfill['stages'][number]

const DEFAULT_CHUNK = 10
/** A run names at most so many ranges, and in the worst case each partition is one. */
const MAX_PAIRS_PER_CHUNK = 10_000
/** They are part of one event, which may have 1 MiB, and so are positions. */
const MAX_POSITIONS_BYTES = 900_000
const MAX_SELECTION_BYTES = 600_000

const backfillPolicy = z.object({ chunk: z.number().int().min(1) })

/** The size of chunks that an asset was declared with. */
function declaredChunk(graph: AssetGraph, key: string): number | undefined {
  const { success, data } = backfillPolicy.safeParse(graph.definition(key).policies['backfill'])
  return success ? data.chunk : undefined
}

interface OpenStage {
  readonly assets: Map<string, Spans>
  readonly first: string
}

/**
 * Puts assets together that can be made chunk by chunk in the same runs: they have the same partitions, and each is made from the partition of
 * the same key of the others. Everything else is a stage of its own, after the stages that it needs.
 */
export function stagesOf(
  chosen: ChosenPositions,
  { graph, partitions, chunkSize }: { graph: AssetGraph; partitions: GraphPartitions; chunkSize: number | undefined },
): StagePayload[] {
  refuseTooMany(chosen)
  const stages: OpenStage[] = []
  const stageOf = new Map<string, number>()
  const chunkOf = (keys: readonly string[]): number =>
    chunkSize ?? Math.min(...keys.map((key) => declaredChunk(graph, key) ?? Number.POSITIVE_INFINITY), smallest(keys))
  const smallest = (keys: readonly string[]): number =>
    keys.some((key) => declaredChunk(graph, key) !== undefined) ? MAX_PAIRS_PER_CHUNK : DEFAULT_CHUNK
  for (const [key, positions] of chosen) {
    if (positions.count === 0) continue
    let earliest = 0
    for (const link of partitions.links(key)) {
      const above = stageOf.get(link.upstream)
      if (above === undefined || link.upstream === key) continue
      const { isSame } = staleLink(key, link, partitions)
      earliest = Math.max(earliest, isSame || isWhole(partitions, key, link.upstream) ? above : above + 1)
    }
    const place = stages.findIndex(({ assets, first }, index) => {
      const keys = [...assets.keys(), key]
      return (
        index >= earliest &&
        partitions.of(first) === partitions.of(key) &&
        bytesOf(keys, chunkOf(keys), partitions) <= MAX_SELECTION_BYTES &&
        keys.length * chunkOf(keys) <= MAX_PAIRS_PER_CHUNK
      )
    })
    stageOf.set(key, place < 0 ? stages.length : place)
    if (place < 0) stages.push({ first: key, assets: new Map([[key, positions]]) })
    else stages[place]?.assets.set(key, positions)
  }
  const made = stages.map(({ assets, first }): StagePayload => {
    const keys = [...assets.keys()]
    const chunk_size = chunkOf(keys)
    const { count } = union([...assets.values()])
    if (chunk_size > MAX_PAIRS_PER_CHUNK || bytesOf(keys, Math.min(chunk_size, count), partitions) > MAX_SELECTION_BYTES)
      throw chunkTooLarge(first, chunk_size)
    return {
      assets: [...assets].map(([asset_key, positions]) => ({ asset_key, positions: packSet(positions) })),
      partitions: partitions.of(first).definition ?? null,
      chunk_size,
    }
  })
  refuseLong(made)
  return made
}

/** Two assets without partitions are made one after the other in the same run. */
const isWhole = (partitions: GraphPartitions, a: string, b: string): boolean =>
  partitions.of(a).definition === undefined && partitions.of(b).definition === undefined

/** What a chunk takes in the request of its run, if no two of its partitions are neighbours. */
function bytesOf(keys: readonly string[], chunk: number, partitions: GraphPartitions): number {
  return keys.reduce((sum, key) => {
    const set = partitions.of(key)
    const longest = set.count === 0 ? 0 : Math.max(Buffer.byteLength(set.at(0)), Buffer.byteLength(set.at(set.count - 1)))
    return sum + Math.min(chunk, set.count) * (Buffer.byteLength(key) + longest + 5)
  }, 0)
}

/** They are part of one event. */
function refuseLong(stages: readonly StagePayload[]): void {
  const bytes = stages.flatMap(({ assets }) => assets).reduce((sum, { positions }) => sum + JSON.stringify(positions).length, 0)
  if (bytes > MAX_POSITIONS_BYTES) throw tooScattered()
}

const chunkTooLarge = (key: string, size: number): ServoError =>
  new ServoError('invalid', 'chunk_too_large', `a chunk of ${size} partitions of ${key} does not fit into one request`, {
    hint: 'Use a smaller --chunk-size.',
    facts: { field: 'chunk_size' },
  })
