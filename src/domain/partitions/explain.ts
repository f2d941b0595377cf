import { type KeyList, keysOf } from '../../partitions/key-list.ts'
import type { RecordedGraph } from '../assets/definitions.ts'
import type { GraphPartitions } from '../assets/graph-partitions.ts'
import { taskKey } from '../assets/graph-partitions.ts'
import type { StaleAsset, UpstreamLink } from './stale-asset.ts'
import { ancestry, CAUSES, type Staleness } from './staleness.ts'
import { type Cause, causeNames } from './status-names.ts'

/** Upstream partitions that make others stale: the first few and their number. */
export interface Blamed {
  readonly asset_key: string
  readonly partition_keys: readonly string[]
  readonly count: number
  /** Of the missing ones, the number whose last attempt failed. */
  readonly failed: number
  /** Of the missing ones, the number that do not exist. */
  readonly absent: number
}

/** One reason why a partition is stale, and the path by which it gets there. */
export interface Explanation {
  readonly cause: Cause
  /** The asset that has the cause: the asset in question, or an asset upstream of it. */
  readonly asset_key: string
  /** The number of its partitions that have the cause. */
  readonly count: number
  /** The first of these partitions. */
  readonly partition_keys: readonly string[]
  /** For causes upstream: the partitions that are missing or newer. */
  readonly upstream: Blamed | null
  /** Since when, where that is known. */
  readonly since: number | null
  /** The assets from the cause down to the partition in question. */
  readonly path: readonly string[]
}

/** Only this many keys are named; the rest is counted. */
const SHOWN_KEYS = 5

export interface ExplainOptions {
  readonly staleness: Staleness
  readonly graph: RecordedGraph
  readonly partitions: GraphPartitions
  /** When the code that an asset has now was recorded. */
  readonly definedAt: (assetKey: string) => number | null
}

/** Partitions of one asset that lead to the partition in question. */
interface Reached {
  readonly positions: number[]
  /** For each position the one below it through which it was reached first, plus one; 0 when it was not. */
  readonly below: Int32Array
  readonly belowAsset: (string | undefined)[]
}

/** All causes why a partition is stale: its own, and those of everything it is made from. Nothing when it is fresh. */
export function explain(assetKey: string, position: number, options: ExplainOptions): Explanation[] {
  const { staleness, graph } = options
  const found: Explanation[] = []
  const reached = new Map<string, Reached>([[assetKey, reachedAt(staleness.asset(assetKey), position)]])
  for (const key of [...ancestry(graph, [assetKey])].reverse()) {
    const here = reached.get(key)
    if (here === undefined) continue
    const asset = staleness.asset(key)
    // For an asset that is made from its own past, more are found on the way.
    for (const at of here.positions) goUp(asset, at, reached, staleness)
    for (const cause of causeNames) {
      // The asset with the missing partition reports that it was never made.
      if (cause === 'never_materialized' && key !== assetKey) continue
      const having = here.positions.filter((at) => staleness.causes(asset, at) & CAUSES[cause])
      if (having.length > 0) found.push(...explainCause(asset, cause, having, reached, options))
    }
  }
  return found
}

function reachedAt(asset: StaleAsset, position: number): Reached {
  return { positions: [position], below: new Int32Array(asset.set.count), belowAsset: [] }
}

/** Only stale partitions upstream make a partition stale. */
function goUp(asset: StaleAsset, position: number, reached: Map<string, Reached>, staleness: Staleness): void {
  for (const link of asset.links) {
    const upstream = link.above
    for (const { from, to } of link.needed(position).spans) {
      for (let at = from; at <= to; at++) {
        if (!staleness.isStale(upstream, at)) continue
        let there = reached.get(upstream.key)
        if (there === undefined) {
          there = { positions: [], below: new Int32Array(upstream.set.count), belowAsset: [] }
          reached.set(upstream.key, there)
        }
        if (there.below[at] !== 0) continue
        there.below[at] = position + 1
        there.belowAsset[at] = asset.key
        there.positions.push(at)
      }
    }
  }
}

/** One explanation for each upstream that is to blame, or a single one for a cause of the asset itself. */
function explainCause(
  asset: StaleAsset,
  cause: Cause,
  positions: readonly number[],
  reached: ReadonlyMap<string, Reached>,
  options: ExplainOptions,
): Explanation[] {
  const { set } = asset
  const [first] = positions
  if (first === undefined) return []
  const path = pathFrom(asset.key, first, reached, options.staleness)
  const common = {
    cause,
    asset_key: asset.key,
    count: positions.length,
    partition_keys: positions.slice(0, SHOWN_KEYS).map((at) => set.at(at)),
  }
  if (cause === 'code_changed') return [{ ...common, upstream: null, since: options.definedAt(asset.key), path }]
  if (cause === 'never_materialized') return [{ ...common, upstream: null, since: null, path }]
  if (cause === 'freshness') {
    const madeAt = asset.columns.isMade(first) ? asset.columns.shownAt(first) : 0
    return [{ ...common, upstream: null, since: asset.freshness?.staleSince(first, madeAt) ?? null, path }]
  }
  const blamed: Explanation[] = []
  for (const link of asset.links) {
    const { having, since, ...upstream } = blame(asset, positions, link, cause, options)
    if (having === 0) continue
    blamed.push({
      ...common,
      count: having,
      upstream,
      since,
      path: [taskKey(link.upstream, upstream.partition_keys[0] ?? ''), ...path],
    })
  }
  return blamed
}

/** The partitions of one upstream that are missing, or newer than what was made from them. */
function blame(
  asset: StaleAsset,
  positions: readonly number[],
  link: UpstreamLink,
  cause: Cause,
  { partitions, staleness }: ExplainOptions,
): Blamed & { having: number; since: number | null } {
  const upstream = link.above
  const keys: string[] = []
  // Many partitions may be made from the same one, which is to blame once.
  const blamed = new Set<number>()
  const absent: KeyList[] = []
  let having = 0
  let failed = 0
  let since: number | null = null
  for (const position of positions) {
    let isHaving = false
    const { spans } = link.needed(position)
    for (const { from, to } of spans) {
      for (let at = from; at <= to; at++) {
        const isToBlame =
          cause === 'upstream_missing'
            ? !upstream.isSource && !upstream.columns.isMade(at)
            : staleness.isChanged(asset, position, upstream, at)
        if (!isToBlame) continue
        isHaving = true
        if (blamed.has(at)) continue
        blamed.add(at)
        if (keys.length < SHOWN_KEYS) keys.push(upstream.set.at(at))
        if (cause === 'upstream_missing' && upstream.columns.hasFailedLast(at)) failed++
        if (cause === 'upstream_changed') since = Math.min(since ?? Number.POSITIVE_INFINITY, staleness.dataSince(upstream, at))
      }
    }
    if (cause === 'upstream_missing' && link.needed(position).absent > 0) {
      const { missing }: { missing: KeyList } = partitions.upstreamAt(asset.key, link.link, position)
      isHaving = true
      absent.push(missing)
      for (const key of keysOf(missing, 0, SHOWN_KEYS)) if (keys.length < SHOWN_KEYS && !keys.includes(key)) keys.push(key)
    }
    if (isHaving) having++
  }
  const missing = countOnce(absent)
  const count = blamed.size + missing
  return { asset_key: link.upstream, partition_keys: keys, count, failed, absent: missing, since, having }
}

/** How many keys are in these lists, each counted once. One list, which may be very long, has each once. */
function countOnce(lists: readonly KeyList[]): number {
  if (lists.length < 2) return lists[0]?.count ?? 0
  return new Set(lists.flatMap((list) => [...keysOf(list)])).size
}

function pathFrom(key: string, position: number, reached: ReadonlyMap<string, Reached>, staleness: Staleness): string[] {
  const path: string[] = []
  for (let at = position, asset: string | undefined = key; asset !== undefined; ) {
    path.push(taskKey(asset, staleness.asset(asset).set.at(at)))
    const here: Reached | undefined = reached.get(asset)
    asset = here?.belowAsset[at]
    at = (here?.below[at] ?? 0) - 1
  }
  return path
}
