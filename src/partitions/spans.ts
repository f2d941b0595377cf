import { countWhile } from '../lib/search.ts'

/** Positions from one up to and with another. */
export interface Span {
  readonly from: number
  readonly to: number
}

/**
 * Some of the positions of a sequence: sorted, disjoint spans. A hundred thousand neighbours are one span, so whoever
 * carries a set of partitions carries its edges only.
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
      const span = countWhile(before.length, (i) => (before[i] as number) <= index) - 1
      return (merged[span] as Span).from + index - (before[span] as number)
    },
    has(position) {
      const span = countWhile(merged.length, (i) => (merged[i] as Span).from <= position) - 1
      return span >= 0 && position <= (merged[span] as Span).to
    },
  }
}

export const span = (from: number, to: number): Spans => spans([{ from, to }])

export const points = (positions: readonly number[]): Spans =>
  spans(positions.map((position) => ({ from: position, to: position })))

export const union = (all: readonly Spans[]): Spans =>
  all.length === 1 ? (all[0] as Spans) : spans(all.flatMap(({ list }) => list))

export function intersection(a: Spans, b: Spans): Spans {
  const both: Span[] = []
  for (let i = 0, j = 0; i < a.list.length && j < b.list.length; ) {
    const [left, right] = [a.list[i] as Span, b.list[j] as Span]
    both.push({ from: Math.max(left.from, right.from), to: Math.min(left.to, right.to) })
    if (left.to < right.to) i++
    else j++
  }
  return spans(both)
}
