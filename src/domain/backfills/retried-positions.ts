import { difference, meet, Neighbours, type Span, type Spans, spans, union } from '../../partitions/spans.ts'
import type { GraphPartitions } from '../assets/graph-partitions.ts'
import { staleLink } from '../partitions/stale-links.ts'
import type { BackfillAssetRow } from './backfill-assets.table.ts'
import type { BackfillRow } from './backfills.table.ts'
import { positionsOfPartitions } from './chunk-work.ts'

/**
 * What a retry of a backfill makes again, by asset: what failed, and what was skipped because of that. A run that was cancelled by itself makes
 * the backfill fail, so what it left undone belongs to that too. What was cancelled with the whole backfill does not, and then neither does
 * what lacks it: it would be made from older values.
 */
export function retriedPositions(
  backfill: Readonly<BackfillRow>,
  assets: readonly Readonly<BackfillAssetRow>[],
  partitions: GraphPartitions,
): ReadonlyMap<string, Spans> {
  const { state, cancelled_partitions } = backfill
  const retried = new Map<string, Spans>()
  if (state !== 'CANCELLED' || cancelled_partitions === 0) {
    for (const row of assets)
      retried.set(row.asset_key, positionsOfPartitions(backfill, row, ['failed', 'skipped', 'cancelled']))
    return retried
  }
  /** By asset, in graph order: what is neither made nor retried. */
  const lost = new Map<string, Spans>()
  for (const row of assets) {
    const { asset_key } = row
    const cancelled = positionsOfPartitions(backfill, row, ['cancelled'])
    lost.set(asset_key, cancelled)
    const links = partitions.links(asset_key).filter(({ upstream }) => lost.has(upstream))
    const needs = links.map((link) => staleLink(asset_key, link, partitions))
    const without = new Neighbours()
    const isLost = (upstream: string, span: Span): boolean =>
      (upstream === asset_key && without.meets(span)) || meet(lost.get(upstream) ?? spans([]), spans([span]))
    const asked = positionsOfPartitions(backfill, row, ['failed', 'skipped'])
    for (const { from, to } of asked.list)
      for (let at = from; at <= to; at++)
        if (needs.some((need) => need.needed(at).spans.some((span) => isLost(need.upstream, span)))) without.add(at)
    lost.set(asset_key, union([cancelled, spans(without.list)]))
    retried.set(asset_key, difference(asked, spans(without.list)))
  }
  return retried
}
