import { countWhile, lastAtMost } from '../lib/collections/binary-search.ts'
import { itemAt } from '../lib/collections/item-at.ts'

/** Positions from one up to and with another. */
export interface Span {
  readonly from: number
  readonly to: number
}

/**
 * Some of the positions of a sequence: sorted, disjoint spans. A hundred thousand neighbours are one span, so a set
 * of partitions is as small as its edges.
 */
export interface Spans {
  readonly list: readonly Span[]
  readonly count: number
  /** The position that is `index`-th among the chosen ones. */
  at(index: number): number
  has(position: number): boolean
}

/** In any order, overlapping or not; empty spans (`to` before `from`) add nothing. */
export function spans(list: readonly Span[]): Spans {
  const merged: { from: number; to: number }[] = []
  const sorted = list.length < 2 ? list : [...list].sort((a, b) => a.from - b.from)
  for (const { from, to } of sorted) {
    if (to < from) continue
    const last = merged.at(-1)
    if (last !== undefined && from <= last.to + 1) last.to = Math.max(last.to, to)
    else merged.push({ from, to })
  }
  // How many positions come before each span, to find the n-th by halving.
  const before: number[] = []
  let count = 0
  for (const { from, to } of merged) {
    before.push(count)
    count += to - from + 1
  }
  return {
    list: merged,
    count,
    at(index) {
      if (!(index >= 0 && index < count)) throw new RangeError(`there is no index ${index} among ${count} positions`)
      const at = lastAtMost(before, index)
      return itemAt(merged, at).from + index - itemAt(before, at)
    },
    has(position) {
      const span = merged[countWhile(merged.length, (i) => itemAt(merged, i).from <= position) - 1]
      return span !== undefined && position <= span.to
    },
  }
}

export const span = (from: number, to: number): Spans => spans([{ from, to }])

export const points = (positions: readonly number[]): Spans =>
  spans(positions.map((position) => ({ from: position, to: position })))

export function union(all: readonly Spans[]): Spans {
  const [first, second] = all
  return first !== undefined && second === undefined ? first : spans(all.flatMap(({ list }) => list))
}

export function intersection(a: Spans, b: Spans): Spans {
  const both: Span[] = []
  for (let i = 0, j = 0; ; ) {
    const [left, right] = [a.list[i], b.list[j]]
    if (left === undefined || right === undefined) return spans(both)
    both.push({ from: Math.max(left.from, right.from), to: Math.min(left.to, right.to) })
    if (left.to < right.to) i++
    else j++
  }
}
