import type { Rows } from '../../model/rows.ts'
import type { PartitionDefinition } from '../../partitions/definition.ts'
import { rangeKey } from '../../partitions/key.ts'
import {
  difference,
  intersection,
  meet,
  Neighbours,
  points,
  type Span,
  type Spans,
  spans,
  union,
  unpackSpans,
} from '../../partitions/spans.ts'
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
  /** Assets of the chunk that are made from their own past, of which the chunk may have a part itself. */
  readonly chains: readonly { readonly asset: string; readonly link: StaleLink }[]
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
  const chains: { asset: string; link: StaleLink }[] = []
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
      if (upstream === asset) chains.push({ asset, link: stale })
      // What the chunk makes itself comes in the order of its own run.
      const others = upstream === asset ? difference(asked, positions) : asked
      if (others.count > 0) needs.push({ asset, link: stale, positions: others })
    }
  }
  return { chunk_index: index, pairs, needs, within, chains }
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

/**
 * Partitions of the chunk that cannot be made, because something that they need was not made in this backfill, however many others lie
 * between: what is skipped for any reason is missing to whatever needs it. So it does not matter how the partitions are cut into chunks.
 */
export function leftOutOf(rows: Rows, backfill: Readonly<BackfillRow>, needs: ChunkNeeds): LeftOutOfChunk {
  const without = (outcomes: readonly Lost[]) =>
    withoutNeeded(needs, (asset) => {
      const row = rows.hot(backfillAssets).get(backfill.backfill_id, asset)
      return row === undefined ? spans([]) : positionsOfPartitions(backfill, row, outcomes)
    })
  const skipped = without(['failed', 'skipped', 'cancelled'])
  const overlapped = new Map<string, Spans>()
  // What lacks both counts as skipped because of the failure: it is retried with that.
  for (const [asset, positions] of without(['failed', 'skipped', 'cancelled', 'overlapped'])) {
    const rest = difference(positions, skipped.get(asset) ?? spans([]))
    if (rest.count > 0) overlapped.set(asset, rest)
  }
  return { skipped, overlapped }
}

/** By asset: what is left out of a chunk because something failed, and what because another run was making something. */
export interface LeftOutOfChunk {
  readonly skipped: ReadonlyMap<string, Spans>
  readonly overlapped: ReadonlyMap<string, Spans>
}

type Lost = 'failed' | 'skipped' | 'overlapped' | 'cancelled'

function withoutNeeded({ pairs, needs, within, chains }: ChunkNeeds, lostOf: (asset: string) => Spans): Map<string, Spans> {
  const skipped = new Map<string, Spans>()
  // In graph order, so that what is above is known.
  for (const [asset, positions] of pairs) {
    const causes: Spans[] = []
    for (const each of needs)
      if (each.asset === asset && each.link.upstream !== asset)
        causes.push(withoutUpstream(each, positions, lostOf(each.link.upstream)))
    for (const each of within)
      if (each.asset === asset) causes.push(intersection(skipped.get(each.upstream) ?? spans([]), positions))
    const own = chains.filter((each) => each.asset === asset).map(({ link }) => link)
    const first = union(causes)
    const all = own.length === 0 ? first : withoutPast(own, positions, first, lostOf(asset))
    if (all.count > 0) skipped.set(asset, all)
  }
  return skipped
}

function withoutUpstream({ link, positions: needed }: Need, own: Spans, bad: Spans): Spans {
  if (!meet(bad, needed)) return spans([])
  const found = new Neighbours()
  for (const { from, to } of own.list)
    for (let position = from; position <= to; position++) if (meet(spans(link.needed(position).spans), bad)) found.add(position)
  return spans(found.list)
}

/** An asset that is made from its own past goes no further than where that is missing: its chain is followed from the oldest on. */
function withoutPast(links: readonly StaleLink[], own: Spans, skipped: Spans, bad: Spans): Spans {
  if (skipped.count === 0 && bad.count === 0) return skipped
  const found = new Neighbours()
  for (const { from, to } of own.list) {
    for (let position = from; position <= to; position++) {
      const isLost = (past: Span): boolean => found.meets(past) || meet(spans([past]), bad)
      if (skipped.has(position) || links.some((link) => link.needed(position).spans.some(isLost))) found.add(position)
    }
  }
  return spans(found.list)
}

const stageOf = ({ stages }: Readonly<BackfillRow>, asset: string): Stage | undefined =>
  stages.find(({ assets }) => assets.includes(asset))

/** Positions of partitions with these outcomes. */
export function positionsOfPartitions(
  backfill: Readonly<BackfillRow>,
  row: Readonly<BackfillAssetRow>,
  outcomes: readonly Lost[],
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
  { skipped, overlapped }: LeftOutOfChunk,
  partitions: GraphPartitions,
): string[] {
  return [...pairs].flatMap(([asset, positions]) => {
    const left = difference(difference(positions, skipped.get(asset) ?? spans([])), overlapped.get(asset) ?? spans([]))
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
