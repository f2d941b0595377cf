import { spansInSet } from '../../partitions/key-range.ts'
import type { Span } from '../../partitions/spans.ts'
import type { Link } from '../assets/graph-mappings.ts'
import type { GraphPartitions } from '../assets/graph-partitions.ts'

/** The upstream partitions that a partition is made from, by position. */
export interface NeededSpans {
  readonly spans: readonly Span[]
  /** The number of needed partitions that do not exist. */
  readonly absent: number
}

/** One dependency of an asset, ready to be asked for a million partitions in a row. */
export interface StaleLink {
  readonly link: Link
  readonly upstream: string
  /** True if each partition is made from the one at the same position, and nothing else. */
  readonly isSame: boolean
  /** True if all partitions are made from the same ones. */
  readonly isFixed: boolean
  needed(position: number): NeededSpans
  /** Positions that those of a span are made from, and perhaps others between them. */
  hull(span: Span): Span
}

export function staleLink(assetKey: string, link: Link, partitions: GraphPartitions): StaleLink {
  const { upstream, mapping } = link
  const own = partitions.of(assetKey)
  const theirs = partitions.of(upstream)
  const isSame = mapping.type === 'identity' && own === theirs
  const whole: NeededSpans = { spans: [{ from: 0, to: theirs.count - 1 }], absent: 0 }
  // The answer is the same for every position.
  const isFixed = theirs.definition === undefined || ['all', 'last', 'specific'].includes(mapping.type)
  let fixed: NeededSpans | undefined
  let last: { position: number; needed: NeededSpans } | undefined

  function ask(position: number): NeededSpans {
    if (theirs.definition === undefined) return whole
    const { ranges, missing } = partitions.upstreamAt(assetKey, link, position)
    // The first window of an asset has none before it, and needs none.
    const absent = upstream === assetKey ? 0 : missing.count
    return { spans: ranges.flatMap((range) => [...spansInSet(range)]), absent }
  }

  function needed(position: number): NeededSpans {
    if (isFixed) {
      fixed ??= ask(position)
      return fixed
    }
    if (last?.position !== position) last = { position, needed: ask(position) }
    return last.needed
  }

  return {
    link,
    upstream,
    isSame,
    isFixed,
    needed,
    hull({ from, to }) {
      if (isSame) return { from, to }
      if (upstream === assetKey) return { from: 0, to: Math.max(0, to - 1) }
      if (mapping.type !== 'time_window' && !isFixed) return { from: 0, to: theirs.count - 1 }
      const ends = [...needed(from).spans, ...needed(to).spans]
      if (ends.length === 0) return { from: 0, to: theirs.count - 1 }
      return { from: Math.min(...ends.map((span) => span.from)), to: Math.max(...ends.map((span) => span.to)) }
    },
  }
}
