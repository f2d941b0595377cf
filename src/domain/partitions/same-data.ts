import { assert } from '../../lib/assert.ts'
import type { Span } from '../../partitions/spans.ts'
import type { StatusColumns } from './status-columns.ts'

/** A stretch of time in which a partition had the data that it has now: from `from` up to, and without, `to`. */
export interface Run {
  readonly from: number
  readonly to: number
}

/** The largest time of blocks of this many partitions is kept. */
const BLOCK = 1_024

/**
 * When the partitions of an asset had the data that they have now. What was made from a partition is up to date if the partition had
 * this same data in all the time in which it may have been read, whatever came in between.
 */
export class SameData {
  readonly #count: number
  /** Since when each has what it has now, without a break; 0 for a partition that was not made. */
  readonly #since: Float64Array
  readonly #blockSince: Float64Array
  /** Earlier stretches of the few partitions that went back to what they were before. */
  readonly #earlier: ReadonlyMap<number, readonly Run[]>
  /** What the clock showed then, if that is another time. */
  readonly #shown: ReadonlyMap<number, number>

  constructor(
    since: Float64Array,
    earlier: ReadonlyMap<number, readonly Run[]>,
    shown: ReadonlyMap<number, number> = new Map(),
  ) {
    this.#count = since.length
    this.#since = since
    this.#earlier = earlier
    this.#shown = shown
    this.#blockSince = new Float64Array(Math.ceil(since.length / BLOCK))
    for (let at = 0; at < since.length; at++) {
      const block = (at / BLOCK) | 0
      if ((since[at] ?? 0) > (this.#blockSince[block] ?? 0)) this.#blockSince[block] = since[at] ?? 0
    }
  }

  /** True if some partition went back to what it was before. Only then does it matter when those made from it were ready. */
  get hasEarlier(): boolean {
    return this.#earlier.size > 0
  }

  since(position: number): number {
    return this.#since[position] ?? 0
  }

  /** The same by the clock of that time. */
  shownSince(position: number): number {
    return this.#shown.get(position) ?? this.since(position)
  }

  /** True if a partition had what it has now from `from` to `to`, both included. */
  covers(position: number, from: number, to: number): boolean {
    return this.since(position) <= from || isIn(this.#earlier.get(position) ?? [], from, to)
  }

  /** The latest `since` of a span. */
  sinceOf({ from, to }: Span): number {
    assert(from >= 0 && to < this.#count, `there are no positions ${from} to ${to}`)
    let since = 0
    for (let at = from; at <= to; ) {
      const isBlock = at % BLOCK === 0 && at + BLOCK <= to + 1
      since = Math.max(since, (isBlock ? this.#blockSince[at / BLOCK] : this.#since[at]) ?? 0)
      at += isBlock ? BLOCK : 1
    }
    return since
  }

  /** The stretches of time in which all partitions of these spans had what they have now. The last one lasts until now. */
  runsOf(spans: readonly Span[]): readonly Run[] {
    let floor = 0
    const returned: number[] = []
    for (const { from, to } of spans) {
      for (let at = from; at <= to; at++) {
        if (this.#earlier.has(at)) returned.push(at)
        else floor = Math.max(floor, this.since(at))
      }
    }
    let common: Run[] = [{ from: floor, to: Number.POSITIVE_INFINITY }]
    for (const at of returned) {
      const own = [...(this.#earlier.get(at) ?? []), { from: this.since(at), to: Number.POSITIVE_INFINITY }]
      common = commonRuns(common, own)
    }
    return common
  }
}

/** The stretches that are in both lists. Each list is in order of time, and so is the result. */
function commonRuns(some: readonly Run[], others: readonly Run[]): Run[] {
  const found: Run[] = []
  for (const one of some) {
    for (const other of others) {
      const from = Math.max(one.from, other.from)
      const to = Math.min(one.to, other.to)
      if (from < to) found.push({ from, to })
    }
  }
  return found
}

/** True if one of these stretches has everything from `from` to `to`, both included. */
export function isIn(runs: readonly Run[], from: number, to: number): boolean {
  for (const run of runs) if (run.from <= from && to < run.to) return true
  return false
}

/** Takes the versions of materializations, in any order and any number of times, and works out the stretches. */
export class VersionLog {
  readonly #columns: StatusColumns
  #size = 0
  #positions = new Int32Array(1_024)
  #times = new Float64Array(1_024)
  #versions = new Int32Array(1_024)
  /** What the clock showed when a record was made, where that is another time than its place in the order. */
  readonly #shown = new Map<number, number>()
  readonly #numberOf = new Map<string, number>()

  constructor(columns: StatusColumns) {
    this.#columns = columns
  }

  /** The number of a version here. None is the version of nothing, not even of itself. */
  versionOf(version: string | null): number {
    if (version === null) return -1
    let number = this.#numberOf.get(version)
    if (number === undefined) {
      number = this.#numberOf.size
      this.#numberOf.set(version, number)
    }
    return number
  }

  add(position: number, madeAt: number, version: number, shownAt = madeAt): void {
    if (shownAt !== madeAt) this.#shown.set(this.#size, shownAt)
    if (this.#size === this.#times.length) {
      const room = 2 * this.#size
      this.#positions = grown(this.#positions, new Int32Array(room))
      this.#times = grown(this.#times, new Float64Array(room))
      this.#versions = grown(this.#versions, new Int32Array(room))
    }
    this.#positions[this.#size] = position
    this.#times[this.#size] = madeAt
    this.#versions[this.#size] = version
    this.#size++
  }

  read(): SameData {
    const columns = this.#columns
    const { count } = columns.set
    const since = new Float64Array(count)
    const earlier = new Map<number, Run[]>()
    const shown = new Map<number, number>()
    const { starts, order } = this.#byPosition(count)
    for (let position = 0; position < count; position++) {
      if (!columns.isMade(position)) continue
      // What is not on record here is at least not older than this.
      since[position] = columns.madeAt(position)
      const own = order.subarray(starts[position], starts[position + 1])
      const first = own.length > 0 ? this.#runs(position, own, since, earlier) : undefined
      const shownAt = first === undefined ? columns.shownAt(position) : (this.#shown.get(first) ?? since[position] ?? 0)
      if (shownAt !== since[position]) shown.set(position, shownAt)
    }
    return new SameData(since, earlier, shown)
  }

  /** The records of each position stand together, so that nothing has to be sorted but the few of one. */
  #byPosition(count: number): { starts: Int32Array; order: Int32Array } {
    const starts = new Int32Array(count + 1)
    for (let i = 0; i < this.#size; i++) starts[(this.#positions[i] ?? 0) + 1]!++
    for (let i = 0; i < count; i++) starts[i + 1]! += starts[i]!
    const next = starts.slice()
    const order = new Int32Array(this.#size)
    for (let i = 0; i < this.#size; i++) order[next[this.#positions[i] ?? 0]!++] = i
    return { starts, order }
  }

  /** Returns the record with which the last stretch begins, if anything is known of it. */
  #runs(position: number, own: Int32Array, since: Float64Array, earlier: Map<number, Run[]>): number | undefined {
    const [times, versions] = [this.#times, this.#versions]
    if (!isSorted(own, times)) own.sort((a, b) => (times[a] ?? 0) - (times[b] ?? 0))
    const last = own.at(-1) ?? 0
    const now = versions[last] ?? -1
    // The newest on record here is not the one that counts: nothing is known of that one's version.
    if (now < 0 || times[last] !== since[position]) return undefined
    const runs: Run[] = []
    let begun: number | undefined
    let first: number | undefined
    for (let i = 0; i < own.length; ) {
      const record = own[i] ?? 0
      const at = times[record] ?? 0
      // Of several in one millisecond any may have been read.
      let isSame = true
      for (; i < own.length && times[own[i] ?? 0] === at; i++) isSame &&= versions[own[i] ?? 0] === now
      if (isSame) {
        begun ??= at
        first ??= record
      } else if (begun !== undefined) {
        runs.push({ from: begun, to: at })
        begun = undefined
        first = undefined
      }
    }
    if (begun === undefined) return undefined
    since[position] = begun
    if (runs.length > 0) earlier.set(position, runs)
    return first
  }
}

/** Most records come in the order in which they were made. */
function isSorted(order: Int32Array, times: Float64Array): boolean {
  for (let i = 1; i < order.length; i++) if ((times[order[i - 1] ?? 0] ?? 0) > (times[order[i] ?? 0] ?? 0)) return false
  return true
}

function grown<T extends Int32Array | Float64Array>(old: T, fresh: T): T {
  fresh.set(old)
  return fresh
}
