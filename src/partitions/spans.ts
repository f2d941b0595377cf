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

/** Joins positions that come in ascending order, so that only the edges of neighbours take room. */
export class Neighbours {
  readonly list: { from: number; to: number }[] = []

  add(position: number): void {
    const last = this.list.at(-1)
    if (last?.to === position - 1) last.to = position
    else this.list.push({ from: position, to: position })
  }

  /** True if some position of the span is among them. */
  meets({ from, to }: Span): boolean {
    const next = this.list[countWhile(this.list.length, (i) => itemAt(this.list, i).to < from)]
    return next !== undefined && next.from <= to
  }
}

export function union(all: readonly Spans[]): Spans {
  const [first, second] = all
  return first !== undefined && second === undefined ? first : spans(all.flatMap(({ list }) => list))
}

/**
 * All of them together. They are merged as they come, so that many that overlap or touch take no more room than what is left of them.
 * Undefined if there are more than `most`.
 */
export function gathered(parts: Iterable<readonly Span[]>, most = Number.POSITIVE_INFINITY): Spans | undefined {
  let merged: readonly Span[] = []
  let next: Span[] = []
  let count = 0
  for (const part of parts) {
    count += part.length
    if (count > most) return undefined
    for (const each of part) next.push(each)
    if (next.length < Math.max(UNMERGED, merged.length)) continue
    merged = spans([...merged, ...next]).list
    next = []
  }
  return spans([...merged, ...next])
}

const UNMERGED = 65_536

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

/** The positions of `a` that are not in `b`. */
export function difference(a: Spans, b: Spans): Spans {
  const left: Span[] = []
  let j = 0
  for (const { from, to } of a.list) {
    let start = from
    while (j < b.list.length && itemAt(b.list, j).to < from) j++
    for (let k = j; k < b.list.length && itemAt(b.list, k).from <= to; k++) {
      const taken = itemAt(b.list, k)
      left.push({ from: start, to: taken.from - 1 })
      start = taken.to + 1
    }
    left.push({ from: start, to })
  }
  return spans(left)
}

/** True if some position is in both. */
export function meet(a: Spans, b: Spans): boolean {
  const [few, many] = a.list.length <= b.list.length ? [a, b] : [b, a]
  return few.list.some(({ from, to }) => {
    const next = many.list[countWhile(many.list.length, (i) => itemAt(many.list, i).to < from)]
    return next !== undefined && next.from <= to
  })
}

/** Those from the `from`-th up to, and without, the `to`-th, as `slice` takes them. */
export function slice(all: Spans, from: number, to: number): Spans {
  const [first, last] = [Math.max(0, from), Math.min(to, all.count) - 1]
  if (last < first) return spans([])
  const ends = { from: all.at(first), to: all.at(last) }
  const begin = countWhile(all.list.length, (i) => itemAt(all.list, i).to < ends.from)
  const end = countWhile(all.list.length, (i) => itemAt(all.list, i).from <= ends.to)
  return intersection(spans([ends]), spans(all.list.slice(begin, end)))
}

/** Spans as a list of numbers, short when written: how many positions are left out, how many are taken, and so on. */
export function packSpans({ list }: Spans): number[] {
  let next = 0
  return list.flatMap(({ from, to }) => {
    const gap = from - next
    next = to + 1
    return [gap, to - from + 1]
  })
}

const unpacked = new WeakMap<readonly number[], Spans>()

/** What `packSpans` has made. The same list is read once. */
export function unpackSpans(numbers: readonly number[]): Spans {
  const known = unpacked.get(numbers)
  if (known !== undefined) return known
  const list: Span[] = []
  let next = 0
  for (let i = 0; i + 1 < numbers.length; i += 2) {
    const from = next + itemAt(numbers, i)
    next = from + itemAt(numbers, i + 1)
    list.push({ from, to: next - 1 })
  }
  const made = spans(list)
  unpacked.set(numbers, made)
  return made
}
