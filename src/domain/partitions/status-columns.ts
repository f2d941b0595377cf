import { assert } from '../../lib/assert.ts'
import type { PartitionSet } from '../../partitions/partition-set.ts'

/** What is known of several partitions together. */
export interface SpanFacts {
  /** When the last of them was made. */
  readonly madeAt: number
  /** How many were not made. */
  readonly missing: number
}

/** Partitions are looked at in blocks of this many, as long as none of them changes. */
const BLOCK = 1_024
/** No moment that anybody could tell: those are whole milliseconds. */
const SOME_TIME = 0.5

/**
 * The status of every partition of an asset, by position: 12 to 37 bytes each, whatever the key. It takes facts in any order and any
 * number of times, by the rule of the table: the later materialization counts, and the later attempt.
 */
export class StatusColumns {
  /** Positions are those of this set. */
  set: PartitionSet
  /** Grows whenever anything becomes known. */
  version = 0
  /** Something else was told of partitions of which only is known that they were made: now it matters when. */
  wantsTimes = false
  /** Partitions that were made twice in the same millisecond: the table knows which one counts. */
  readonly ties = new Set<number>()
  readonly codes: string[] = []
  readonly #codeOf = new Map<string, number>()
  #madeAt = new Float64Array(0)
  // Made when there is something to put in: most assets have neither failures nor wipes.
  #inputsAt: Float64Array | undefined
  #attemptAt: Float64Array | undefined
  #wipedAt: Float64Array | undefined
  #code = new Int32Array(0)
  #failed: Uint8Array | undefined
  #blockMadeAt = new Float64Array(0)
  /** How many of a block are missing; -1 when it has to be counted. */
  #blockMissing = new Int32Array(0)

  constructor(set: PartitionSet) {
    this.set = set
    this.follow(set)
  }

  /** The same partitions and perhaps some more behind them. */
  follow(set: PartitionSet): void {
    this.set = set
    if (set.count <= this.#madeAt.length) return
    const room = Math.ceil(Math.max(set.count, this.#madeAt.length * 1.25))
    this.#madeAt = grown(this.#madeAt, new Float64Array(room))
    this.#inputsAt &&= grown(this.#inputsAt, new Float64Array(room))
    this.#attemptAt &&= grown(this.#attemptAt, new Float64Array(room))
    this.#wipedAt &&= grown(this.#wipedAt, new Float64Array(room))
    this.#code = grown(this.#code, new Int32Array(room).fill(-1))
    this.#failed &&= grown(this.#failed, new Uint8Array(room))
    this.#blockMadeAt = new Float64Array(Math.ceil(room / BLOCK))
    this.#blockMissing = new Int32Array(Math.ceil(room / BLOCK)).fill(-1)
  }

  /** In memory. */
  get bytes(): number {
    const columns = [this.#madeAt, this.#code, this.#inputsAt, this.#attemptAt, this.#wipedAt, this.#failed]
    return columns.reduce((sum, column) => sum + (column?.byteLength ?? 0), 0)
  }

  /** The number of a code version here. */
  codeOf(version: string | null): number {
    if (version === null) return -1
    let code = this.#codeOf.get(version)
    if (code === undefined) {
      code = this.codes.push(version) - 1
      this.#codeOf.set(version, code)
    }
    return code
  }

  made(position: number, madeAt: number, inputsAt: number, code: number): void {
    const known = this.#madeAt[position] as number
    if (known === SOME_TIME) this.wantsTimes = true
    if (madeAt < known) return
    const inputs = this.#inputs()
    if (madeAt === known) {
      if (inputsAt !== inputs[position] || code !== this.#code[position]) this.ties.add(position)
      return
    }
    this.#madeAt[position] = madeAt
    inputs[position] = inputsAt
    this.#code[position] = code
    this.#blockMissing[(position / BLOCK) | 0] = -1
    this.version++
  }

  /** The same for neighbours that nothing was known of, all at once; false when something was, and nothing is taken over. */
  madeFirst(from: number, madeAt: Float64Array, inputsAt: Float64Array, code: number): boolean {
    const to = from + madeAt.length
    for (let position = from; position < to; position++) {
      if (this.#madeAt[position] === 0) continue
      if (this.#madeAt[position] === SOME_TIME) this.wantsTimes = true
      return false
    }
    this.#madeAt.set(madeAt, from)
    this.#inputs().set(inputsAt, from)
    this.#code.fill(code, from, to)
    this.#blockMissing.fill(-1, (from / BLOCK) | 0, Math.ceil(to / BLOCK))
    this.version++
    return true
  }

  /** Neighbours that were all made, it is not said when; for whoever only counts them. */
  madeSometime(from: number, count: number, code: number): void {
    if (!this.#isUntold(from, from + count)) this.wantsTimes = true
    this.#madeAt.fill(SOME_TIME, from, from + count)
    this.#code.fill(code, from, from + count)
    this.#blockMissing.fill(-1, (from / BLOCK) | 0, Math.ceil((from + count) / BLOCK))
    this.version++
  }

  #isUntold(from: number, to: number): boolean {
    for (let at = from; at < to; at++) {
      if (this.#madeAt[at] !== 0) return false
    }
    const isZero = (column: Float64Array | undefined): boolean =>
      column === undefined || column.subarray(from, to).every((time) => time === 0)
    return isZero(this.#attemptAt) && isZero(this.#wipedAt)
  }

  #inputs(): Float64Array {
    this.#inputsAt ??= new Float64Array(this.#madeAt.length)
    return this.#inputsAt
  }

  /** Between two materializations of the same millisecond. */
  settle(position: number, inputsAt: number, code: number): void {
    this.#inputs()[position] = inputsAt
    this.#code[position] = code
    this.version++
  }

  attempted(position: number, at: number, failed: boolean): void {
    if (this.#madeAt[position] === SOME_TIME) this.wantsTimes = true
    this.#attemptAt ??= new Float64Array(this.#madeAt.length)
    this.#failed ??= new Uint8Array(this.#madeAt.length)
    if (at < (this.#attemptAt[position] as number)) return
    const changes = at !== this.#attemptAt[position] || Number(failed) !== this.#failed[position]
    this.#attemptAt[position] = at
    this.#failed[position] = Number(failed)
    if (changes) this.version++
  }

  wiped(position: number, at: number): void {
    if (this.#madeAt[position] === SOME_TIME) this.wantsTimes = true
    this.#wipedAt ??= new Float64Array(this.#madeAt.length)
    if (at <= (this.#wipedAt[position] as number)) return
    this.#wipedAt[position] = at
    this.#blockMissing[(position / BLOCK) | 0] = -1
    this.version++
  }

  /** Whether there is a materialization that counts. */
  isMade(position: number): boolean {
    return (this.#madeAt[position] as number) > (this.#wipedAt === undefined ? 0 : (this.#wipedAt[position] as number))
  }

  madeAt(position: number): number {
    return this.#madeAt[position] as number
  }

  inputsAt(position: number): number {
    return this.#inputsAt?.[position] ?? 0
  }

  code(position: number): number {
    return this.#code[position] as number
  }

  /** Whether somebody tried again after the last materialization, and failed. */
  isFailed(position: number): boolean {
    if (this.#failed?.[position] !== 1) return false
    return (this.#attemptAt?.[position] ?? 0) > (this.#madeAt[position] as number)
  }

  /** Positions `from` to `to`, both included. */
  span(from: number, to: number): SpanFacts {
    assert(from >= 0 && to < this.set.count, `there are no positions ${from} to ${to}`)
    let madeAt = 0
    let missing = 0
    for (let at = from; at <= to; ) {
      if (at % BLOCK === 0 && at + BLOCK <= to + 1) {
        const block = at / BLOCK
        if (this.#blockMissing[block] === -1) this.#count(block)
        madeAt = Math.max(madeAt, this.#blockMadeAt[block] as number)
        missing += this.#blockMissing[block] as number
        at += BLOCK
        continue
      }
      if (this.isMade(at)) madeAt = Math.max(madeAt, this.#madeAt[at] as number)
      else missing++
      at++
    }
    return { madeAt, missing }
  }

  #count(block: number): void {
    let madeAt = 0
    let missing = 0
    for (let at = block * BLOCK; at < (block + 1) * BLOCK; at++) {
      if (this.isMade(at)) madeAt = Math.max(madeAt, this.#madeAt[at] as number)
      else missing++
    }
    this.#blockMadeAt[block] = madeAt
    this.#blockMissing[block] = missing
  }
}

function grown<T extends Float64Array | Int32Array | Uint8Array>(old: T, fresh: T): T {
  fresh.set(old)
  return fresh
}
