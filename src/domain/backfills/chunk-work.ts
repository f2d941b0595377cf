import type { Rows } from '../../model/rows.ts'
import type { PartitionDefinition } from '../../partitions/definition.ts'
import { rangeKey } from '../../partitions/key.ts'
import { difference, intersection, meet, points, type Spans, spans, union, unpackSpans } from '../../partitions/spans.ts'
import { type GraphPartitions, taskKey } from '../assets/graph-partitions.ts'
import { type StaleLink, staleLink } from '../partitions/stale-links.ts'
import { exactSelections } from '../planning/exact-work.ts'
import { type BackfillAssetRow, backfillAssets } from './backfill-assets.table.ts'
import type { BackfillRow, Stage } from './backfills.table.ts'
import { pairsOfChunk, positionsOfAsset, setOfStage } from './frozen-set.ts'
import { upstreamPositions } from './selecting/asked-positions.ts'

/** What a chunk needs that other chunks of its backfill make. */
export interface ChunkNeeds {
  readonly chunk_index: number
  readonly pairs: ReadonlyMap<string, Spans>
  readonly needs: readonly Need[]
  /** Links between assets of the chunk: what is skipped above is skipped below. */
  readonly within: readonly { readonly asset: string; readonly upstream: string }[]
}

interface Need {
  readonly asset: string
  readonly link: StaleLink
  /** Positions of the upstream asset. */
  readonly positions: Spans
}

export function needsOfChunk(
  rows: Rows,
  backfill: Readonly<BackfillRow>,
  index: number,
  partitions: GraphPartitions,
): ChunkNeeds {
  const pairs = pairsOfChunk(rows, backfill, index)
  const covered = new Set(backfill.asset_selection)
  const needs: Need[] = []
  const within: { asset: string; upstream: string }[] = []
  for (const [asset, positions] of pairs) {
    for (const link of partitions.links(asset)) {
      const { upstream } = link
      if (!covered.has(upstream)) continue
      const stale = staleLink(asset, link, partitions)
      const isWhole = partitions.of(asset).definition === undefined && partitions.of(upstream).definition === undefined
      if (pairs.has(upstream) && (stale.isSame || isWhole)) {
        within.push({ asset, upstream })
        continue
      }
      const asked = intersection(
        upstreamPositions(asset, link, positions, partitions),
        positionsOfAsset(rows, backfill, upstream),
      )
      // What the chunk makes itself comes in the order of its own run.
      const others = upstream === asset ? difference(asked, positions) : asked
      if (others.count > 0) needs.push({ asset, link: stale, positions: others })
    }
  }
  return { chunk_index: index, pairs, needs, within }
}

/** True if a chunk whose run has not ended makes something that this one needs. */
export function needsActive(rows: Rows, backfill: Readonly<BackfillRow>, { needs }: ChunkNeeds): boolean {
  if (needs.length === 0) return false
  return backfill.active_chunks.some(({ chunk_index }) => {
    const making = pairsOfChunk(rows, backfill, chunk_index)
    return needs.some(({ link, positions }) => {
      const made = making.get(link.upstream)
      return made !== undefined && meet(made, positions)
    })
  })
}

/** Partitions of the chunk that cannot be made, because something that they need was not made in this backfill. */
export function skippedOf(
  rows: Rows,
  backfill: Readonly<BackfillRow>,
  { pairs, needs, within }: ChunkNeeds,
): Map<string, Spans> {
  const skipped = new Map<string, Spans>()
  for (const [asset, positions] of pairs) {
    const causes: Spans[] = []
    for (const each of needs) if (each.asset === asset) causes.push(withoutUpstream(rows, backfill, each, positions))
    for (const each of within)
      if (each.asset === asset) causes.push(intersection(skipped.get(each.upstream) ?? spans([]), positions))
    const all = union(causes)
    if (all.count > 0) skipped.set(asset, all)
  }
  return skipped
}

function withoutUpstream(rows: Rows, backfill: Readonly<BackfillRow>, need: Need, own: Spans): Spans {
  const { asset, link, positions: needed } = need
  const row = rows.hot(backfillAssets).get(backfill.backfill_id, link.upstream)
  const bad = row === undefined ? spans([]) : notMade(backfill, row)
  if (!meet(bad, needed)) return spans([])
  const found = new Set<number>()
  for (const { from, to } of own.list) {
    for (let position = from; position <= to; position++) {
      const above = spans(link.needed(position).spans)
      // An asset that is made from its own past goes no further than where that is missing.
      const isBelow = link.upstream === asset && above.list.some((each) => hasAny(found, each))
      if (isBelow || meet(above, bad)) found.add(position)
    }
  }
  return points([...found])
}

function hasAny(found: ReadonlySet<number>, { from, to }: { readonly from: number; readonly to: number }): boolean {
  for (let position = from; position <= to; position++) if (found.has(position)) return true
  return false
}

const stageOf = ({ stages }: Readonly<BackfillRow>, asset: string): Stage | undefined =>
  stages.find(({ assets }) => assets.includes(asset))

/** Partitions of an asset that the backfill did not make: nothing that needs them can be made. */
function notMade(backfill: Readonly<BackfillRow>, row: Readonly<BackfillAssetRow>): Spans {
  return positionsOfPartitions(backfill, row, ['failed', 'skipped', 'overlapped', 'cancelled'])
}

/** Positions of partitions with these outcomes. */
export function positionsOfPartitions(
  backfill: Readonly<BackfillRow>,
  row: Readonly<BackfillAssetRow>,
  outcomes: readonly ('failed' | 'skipped' | 'overlapped' | 'cancelled')[],
): Spans {
  const stage = stageOf(backfill, row.asset_key)
  if (stage === undefined) return spans([])
  const set = setOfStage(backfill, stage)
  return union(
    outcomes.flatMap((outcome) => {
      const { positions, keys } = row[outcome]
      return [unpackSpans(positions), points(keys.flatMap((key) => set.positionOf(key) ?? []))]
    }),
  )
}

/** The request of a chunk's run: exactly what is left of its partitions, by names that mean the same whatever is added later. */
export function selectionOfChunk(
  { pairs }: ChunkNeeds,
  skipped: ReadonlyMap<string, Spans>,
  partitions: GraphPartitions,
): string[] {
  return [...pairs].flatMap(([asset, positions]) => {
    const left = difference(positions, skipped.get(asset) ?? spans([]))
    const set = partitions.of(asset)
    const { definition } = set
    if (left.count === 0) return []
    if (definition === undefined) return [asset]
    const keys = function* (): Iterable<string> {
      for (const { from, to } of left.list) for (let at = from; at <= to; at++) yield set.at(at)
    }
    if (mayGrow(definition)) return [...keys()].map((key) => taskKey(asset, key))
    if (definition.type === 'multi') return exactSelections(new Map([[asset, keys()]]), partitions)
    return left.list.map(({ from, to }) => taskKey(asset, rangeKey(set.at(from), set.at(to), false)))
  })
}

/** True if a key may come to lie between two others. */
function mayGrow(definition: PartitionDefinition): boolean {
  return definition.type === 'multi'
    ? Object.values(definition.dimensions).some(({ type }) => type === 'dynamic')
    : definition.type === 'dynamic'
}
