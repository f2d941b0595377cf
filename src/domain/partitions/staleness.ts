import { assert } from '../../lib/assert.ts'
import { Heap } from '../../lib/collections/heap.ts'
import type { Span } from '../../partitions/spans.ts'
import type { RecordedGraph } from '../assets/definitions.ts'
import type { GraphPartitions } from '../assets/graph-partitions.ts'
import { freshnessOf } from './freshness.ts'
import { type LearnedFacts, ReadData, type WantedFacts } from './read-data.ts'
import type { SameData } from './same-data.ts'
import type { StaleAsset, UpstreamLink } from './stale-asset.ts'
import { type StaleLink, staleLink } from './stale-links.ts'
import type { StatusColumns } from './status-columns.ts'
import type { Cause, DisplayStatus } from './status-names.ts'

/** The causes of staleness, as bits of a number. */
export const CAUSES = {
  never_materialized: 1,
  code_changed: 2,
  upstream_missing: 4,
  upstream_changed: 8,
  freshness: 16,
} as const satisfies Record<Cause, number>

export interface StatusCounts {
  readonly statuses: Readonly<Record<DisplayStatus, number>>
  /** The number of partitions that have each cause themselves; one partition may have several. */
  readonly causes: Readonly<Record<Cause, number>>
  /** The number of partitions that are stale only because something that they are made from is. */
  readonly staleByUpstream: number
  /** The number of partitions whose last attempt failed, made before or not. */
  readonly lastAttemptFailed: number
}

export interface StalenessOptions {
  readonly graph: RecordedGraph
  /** Which partitions there are at this moment. */
  readonly partitions: GraphPartitions
  readonly columns: (assetKey: string) => StatusColumns
  readonly nowMs: number
}

/** The positions of an asset that have to be computed. */
interface Need {
  readonly asset: StaleAsset
  from: number
  to: number
}

const UNKNOWN = 0
const FRESH = 1
const STALE = 2

/**
 * Computes which partitions are stale at one moment, from the records of them and of everything upstream. The answer is not
 * stored: code, policies and upstreams may change at any time. The cost follows the number of partitions that are asked for.
 */
export class Staleness {
  readonly #options: StalenessOptions
  readonly #assets = new Map<string, StaleAsset>()
  readonly #data = new ReadData()
  /** Caches the last span of each link: a million partitions may be made from the same hundred thousand. */
  readonly #answers = new Map<StaleLink, { readonly spans: readonly Span[]; readonly isStale: boolean }>()

  constructor(options: StalenessOptions) {
    this.#options = options
  }

  asset(key: string): StaleAsset {
    const known = this.#assets.get(key)
    if (known !== undefined) return known
    this.prepare([key])
    return this.#prepared(key)
  }

  #prepared(key: string): StaleAsset {
    const asset = this.#assets.get(key)
    assert(asset !== undefined, `${key} is prepared before what is made from it`)
    return asset
  }

  /** Prepares assets for questions, which is faster together than one by one. */
  prepare(keys: readonly string[]): void {
    for (const each of ancestry(this.#options.graph, keys)) if (!this.#assets.has(each)) this.#prepare(each)
  }

  /** After everything it is made from. */
  #prepare(key: string): void {
    const { graph, partitions, columns: columnsOf, nowMs } = this.#options
    const definition = graph.graph.definition(key)
    const columns = columnsOf(key)
    const { set } = columns
    const links: UpstreamLink[] = []
    const asset: StaleAsset = {
      key,
      // Prepared in the order of the graph, at least as far as one depends on the other.
      order: this.#assets.size,
      definition,
      columns,
      set,
      links,
      freshness: freshnessOf(definition.policies['freshness'], set, nowMs),
      isSource: definition.kind === 'source',
      isAlwaysNew: definition.policies['always_new'] === true,
      code: columns.codeOf(definition.code_version ?? null),
      known: new Uint8Array(set.count),
    }
    this.#assets.set(key, asset)
    for (const link of partitions.links(key))
      links.push({ ...staleLink(key, link, partitions), above: this.#prepared(link.upstream) })
  }

  /** The causes of the partition itself and of its direct upstream. */
  causes(asset: StaleAsset, position: number): number {
    const { columns, freshness, isSource, code } = asset
    const isMade = columns.isMade(position)
    let causes = 0
    if (!isMade && !isSource) causes |= CAUSES.never_materialized
    const madeWith = columns.code(position)
    if (isMade && !isSource && code >= 0 && madeWith >= 0 && madeWith !== code) causes |= CAUSES.code_changed
    if (freshness?.staleSince(position, isMade ? columns.shownAt(position) : 0) !== undefined) causes |= CAUSES.freshness
    const inputsAt = isMade ? columns.inputsAt(position) : Number.POSITIVE_INFINITY
    const { links } = asset
    // By index: an iterator for each of a million partitions would be felt.
    for (let i = 0; i < links.length; i++) {
      const link = links[i]
      if (link !== undefined) causes |= this.#causesOf(asset, link, position, inputsAt)
    }
    return causes
  }

  #causesOf(asset: StaleAsset, link: UpstreamLink, position: number, inputsAt: number): number {
    const { columns, isSource } = link.above
    if (link.isSame) {
      if (!columns.isMade(position)) return isSource ? 0 : CAUSES.upstream_missing
      const isChanged = columns.madeAt(position) > inputsAt && this.#data.isOther(asset, position, link.above, position)
      return isChanged ? CAUSES.upstream_changed : 0
    }
    const { spans, absent } = link.needed(position)
    let causes = absent > 0 ? CAUSES.upstream_missing : 0
    let isNewer = false
    for (const { from, to } of spans) {
      const { madeAt, missing } = columns.span(from, to)
      if (missing > 0 && !isSource) causes |= CAUSES.upstream_missing
      if (madeAt > inputsAt) isNewer = true
    }
    if (isNewer && this.#data.areOther(asset, position, link, spans)) causes |= CAUSES.upstream_changed
    return causes
  }

  /** True if an upstream partition has other data than the one that was read to make this partition. */
  isChanged(asset: StaleAsset, position: number, above: StaleAsset, at: number): boolean {
    if (!asset.columns.isMade(position) || !above.columns.isMade(at)) return false
    return above.columns.madeAt(at) > asset.columns.inputsAt(position) && this.#data.isOther(asset, position, above, at)
  }

  /** Since when a partition has the data that it has now, by the clock of that time. */
  dataSince(asset: StaleAsset, position: number): number {
    return this.#data.since(asset, position)
  }

  /**
   * What has to be loaded to be sure about everything that was asked. Undefined when answers are certain; otherwise partitions may
   * seem stale that are not.
   */
  get wanted(): WantedFacts | undefined {
    return this.#data.wanted
  }

  get versions(): ReadonlyMap<string, SameData> {
    return this.#data.versions
  }

  /** Answers are computed anew, with these facts. */
  learn(facts: LearnedFacts): void {
    this.#data.learn(facts)
    this.#answers.clear()
    // Not in place: somebody may still be going through the old ones, which are right as far as they were certain.
    for (const asset of this.#assets.values()) asset.known = new Uint8Array(asset.set.count)
  }

  /** True if it is stale, by itself or because of anything upstream. */
  isStale(asset: StaleAsset, position: number): boolean {
    if (asset.known[position] === UNKNOWN) this.workOut(asset, { from: position, to: position })
    return asset.known[position] === STALE
  }

  /** The partitions of a span that are stale, in order. */
  *staleIn(asset: StaleAsset, span: Span): Iterable<number> {
    this.workOut(asset, span)
    yield* staleOf(asset.known, span)
  }

  display(asset: StaleAsset, position: number): DisplayStatus {
    const { columns } = asset
    if (!columns.isMade(position)) return 'NEVER_MATERIALIZED'
    if (columns.isFailed(position)) return 'MATERIALIZED_BUT_LAST_ATTEMPT_FAILED'
    return this.isStale(asset, position) ? 'STALE' : 'MATERIALIZED'
  }

  /** How many partitions have each status. */
  count(asset: StaleAsset): StatusCounts {
    const { columns, known } = asset
    const { count } = asset.set
    if (known.includes(UNKNOWN)) this.workOut(asset, { from: 0, to: count - 1 })
    let stale = 0
    const byCauses = new Uint32Array(2 * CAUSES.freshness)
    for (const position of staleOf(known, { from: 0, to: count - 1 })) {
      byCauses[this.causes(asset, position)]!++
      if (columns.isMade(position) && !columns.isFailed(position)) stale++
    }
    const having = (bit: number): number => byCauses.reduce((sum, n, mask) => sum + (mask & bit ? n : 0), 0)
    const causes = {
      never_materialized: having(CAUSES.never_materialized),
      code_changed: having(CAUSES.code_changed),
      upstream_missing: having(CAUSES.upstream_missing),
      upstream_changed: having(CAUSES.upstream_changed),
      freshness: having(CAUSES.freshness),
    }
    const never = asset.isSource ? columns.span(0, count - 1).missing : causes.never_materialized
    const { all: lastAttemptFailed, made: failed } = columns.failures(count)
    return {
      statuses: {
        NEVER_MATERIALIZED: never,
        MATERIALIZED_BUT_LAST_ATTEMPT_FAILED: failed,
        STALE: stale,
        MATERIALIZED: count - never - failed - stale,
      },
      causes,
      staleByUpstream: byCauses[0] ?? 0,
      lastAttemptFailed,
    }
  }

  /**
   * Computes the unknown part of a span, and before it everything upstream. Goes up asset by asset, the last of the graph first,
   * so that each is asked once for all that is needed below it, and then down again, without recursion.
   */
  workOut(asset: StaleAsset, span: Span): void {
    const needs = new Map<StaleAsset, Need>()
    const open = new Heap<Need>((a, b) => a.asset.order > b.asset.order)
    const order: Need[] = []
    const need = (upstream: StaleAsset, { from, to }: Span): void => {
      if (!upstream.known.subarray(from, to + 1).includes(UNKNOWN)) return
      const known = needs.get(upstream)
      if (known !== undefined) {
        known.from = Math.min(known.from, from)
        known.to = Math.max(known.to, to)
        return
      }
      const fresh = { asset: upstream, from, to }
      needs.set(upstream, fresh)
      open.push(fresh)
    }
    need(asset, span)
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      order.push(next)
      const { links } = next.asset
      // Its own past first: that too has to be made from something.
      for (const link of links) if (link.above === next.asset) need(link.above, link.hull(next))
      for (const link of links) if (link.above !== next.asset) need(link.above, link.hull(next))
    }
    for (const each of order.reverse()) this.#fill(each.asset, each)
  }

  #fill(asset: StaleAsset, span: Span): void {
    const { columns, known, links, freshness } = asset
    if (freshness === undefined && links.every(({ isSame }) => isSame)) {
      // This is the case for most assets; then `causes` is computed column by column.
      known.fill(FRESH, span.from, span.to + 1)
      if (!asset.isSource) columns.markOther(asset.code, span, known, STALE)
      for (const { above } of links) {
        const isOther = above.columns.hasVersions ? (at: number) => this.#data.isOther(asset, at, above, at) : undefined
        columns.markOlder(above.columns, span, known, STALE, isOther)
        for (const position of staleOf(above.known, span)) known[position] = STALE
      }
      return
    }
    for (let position = span.from; position <= span.to; position++) {
      if (known[position] !== UNKNOWN) continue
      let isStale = this.causes(asset, position) !== 0
      for (let i = 0; i < links.length && !isStale; i++) {
        const link = links[i]
        isStale = link !== undefined && this.#isAnyStale(link, link.above.known, position)
      }
      known[position] = isStale ? STALE : FRESH
    }
  }

  #isAnyStale(link: StaleLink, known: Uint8Array, position: number): boolean {
    if (link.isSame) return known[position] === STALE
    const { spans } = link.needed(position)
    const last = this.#answers.get(link)
    if (last?.spans === spans) return last.isStale
    const isStale = spans.some(({ from, to }) => known.subarray(from, to + 1).includes(STALE))
    this.#answers.set(link, { spans, isStale })
    return isStale
  }
}

/** Few are stale, and `indexOf` finds the next one much faster than a loop. */
function* staleOf(known: Uint8Array, { from, to }: Span): Iterable<number> {
  const span = known.subarray(from, to + 1)
  for (let at = span.indexOf(STALE); at >= 0; at = span.indexOf(STALE, at)) {
    for (; span[at] === STALE; at++) yield from + at
  }
}

/** Some assets and everything upstream of them, upstream first. */
export function ancestry({ graph }: Pick<RecordedGraph, 'graph'>, keys: readonly string[]): readonly string[] {
  const found = new Set(keys)
  // Iterating a set also visits members that are added on the way.
  for (const each of found) for (const upstream of graph.upstream(each)) found.add(upstream)
  return graph.order.filter((each) => found.has(each))
}
