import { assert } from '../../lib/assert.ts'
import type { PartitionSet } from '../../partitions/partition-set.ts'
import type { Span } from '../../partitions/spans.ts'

/** A summary of several partitions. */
export interface SpanFacts {
  /** When the last of them was made. */
  readonly madeAt: number
  /** How many were not made. */
  readonly missing: number
}

/** The times that the question needs. Without them it is enough to know that a partition was made. */
export interface Times {
  /** When each was made. */
  readonly made: boolean
  /** When each read its inputs. */
  readonly inputs: boolean
}

/** Summaries are kept for blocks of this many partitions. */
const BLOCK = 1_024
/** Stands for a code: no materialization is known. */
const NOT_MADE = 0
/** Added to the number of a code, which is -1 for none. */
const CODES_FROM = 2
/** As many as fit into a byte. */
const FEW_CODES = 256 - CODES_FROM

/**
 * The status of every partition of an asset, by position: 1 to 38 bytes each, whatever the key. It takes facts in any order and any
 * number of times, by the rule of the table: the later materialization counts, and the later attempt. Times are compared with each other,
 * so they are those of the order of the record; only `shownAt` is what a clock showed.
 */
export class StatusColumns {
  /** Positions are those of this set. */
  set: PartitionSet
  readonly times: Times
  /** Grows whenever anything becomes known. */
  version = 0
  /** True if a fact came about partitions whose time of materialization was not loaded: now it matters. */
  wantsMade = false
  /** Partitions that were made twice in the same millisecond: the table knows which one counts. */
  readonly ties = new Set<number>()
  readonly codes: string[] = []
  readonly #codeOf = new Map<string, number>()
  /** The number of partitions that there is room for. */
  #room = 0
  #code: Uint8Array | Int32Array = new Uint8Array(0)
  // Made when there is something to put in: most assets have neither failures nor wipes. Memory that is touched for the first
  // time costs as much as reading a file into it.
  #madeAt: Float64Array | undefined
  #inputsAt: Float64Array | undefined
  /** How far the clock was behind by which each was made. */
  #behind: Float64Array | undefined
  #attemptAt: Float64Array | undefined
  #wipedAt: Float64Array | undefined
  #failed: Uint8Array | undefined
  /** 1 where the data has a version. */
  #versioned: Uint8Array | undefined
  #blockMadeAt = new Float64Array(0)
  /** The number of missing partitions in each block; -1 when it has to be counted. */
  #blockMissing = new Int32Array(0)

  constructor(set: PartitionSet, times: Times = { made: true, inputs: true }) {
    this.set = set
    this.times = times
    this.follow(set)
  }

  /** Goes on with a set that has the same partitions, and perhaps more after them. */
  follow(set: PartitionSet): void {
    this.set = set
    if (set.count <= this.#room) return
    const room = Math.ceil(Math.max(set.count, this.#room * 1.25))
    this.#room = room
    this.#code = grown(this.#code, this.#code instanceof Uint8Array ? new Uint8Array(room) : new Int32Array(room))
    this.#madeAt &&= grown(this.#madeAt, new Float64Array(room))
    this.#behind &&= grown(this.#behind, new Float64Array(room))
    this.#inputsAt &&= grown(this.#inputsAt, new Float64Array(room))
    this.#attemptAt &&= grown(this.#attemptAt, new Float64Array(room))
    this.#wipedAt &&= grown(this.#wipedAt, new Float64Array(room))
    this.#failed &&= grown(this.#failed, new Uint8Array(room))
    this.#versioned &&= grown(this.#versioned, new Uint8Array(room))
    this.#blockMadeAt = new Float64Array(Math.ceil(room / BLOCK))
    this.#blockMissing = new Int32Array(Math.ceil(room / BLOCK)).fill(-1)
  }

  /** In memory. */
  get bytes(): number {
    const times = [this.#madeAt, this.#inputsAt, this.#behind, this.#attemptAt, this.#wipedAt]
    const columns = [...times, this.#code, this.#failed, this.#versioned]
    return columns.reduce((sum, column) => sum + (column?.byteLength ?? 0), 0)
  }

  /** The number of a code version here. */
  codeOf(version: string | null): number {
    if (version === null) return -1
    let code = this.#codeOf.get(version)
    if (code === undefined) {
      code = this.codes.push(version) - 1
      this.#codeOf.set(version, code)
      if (code === FEW_CODES) this.#code = grown(this.#code, new Int32Array(this.#room))
    }
    return code
  }

  made(position: number, madeAt: number, inputsAt: number, code: number, isVersioned = false, shownAt = madeAt): void {
    if (this.#isUndated(position)) this.wantsMade = true
    this.#madeAt ??= new Float64Array(this.#room)
    const known = this.#madeAt[position] ?? 0
    if (madeAt < known) return
    if (this.times.inputs) this.#inputsAt ??= new Float64Array(this.#room)
    if (madeAt === known) {
      const isSame =
        code === this.code(position) &&
        isVersioned === this.isVersioned(position) &&
        (this.#inputsAt === undefined || inputsAt === this.#inputsAt[position])
      if (!isSame) this.ties.add(position)
      return
    }
    this.#madeAt[position] = madeAt
    if (shownAt !== madeAt) this.#behind ??= new Float64Array(this.#room)
    if (this.#behind !== undefined) this.#behind[position] = madeAt - shownAt
    if (this.#inputsAt !== undefined) this.#inputsAt[position] = inputsAt
    this.#code[position] = code + CODES_FROM
    this.#setVersioned(position, position + 1, isVersioned)
    this.#blockMissing[(position / BLOCK) | 0] = -1
    this.version++
  }

  /**
   * The same for neighbours that were all made with the same code and have no other facts. `read` fills in the times that matter,
   * and returns whether each has one. Returns false, and changes nothing, when one has none or something was known already.
   */
  madeWithSameCode(
    from: number,
    count: number,
    { code, isVersioned = false }: { readonly code: number; readonly isVersioned?: boolean },
    read: (what: keyof Times, into: Float64Array) => boolean,
  ): boolean {
    const to = from + count
    if (!this.isUnknown(from, count)) return false
    if (this.times.made) this.#madeAt ??= new Float64Array(this.#room)
    if (this.times.inputs) this.#inputsAt ??= new Float64Array(this.#room)
    const madeAt = this.times.made ? this.#madeAt?.subarray(from, to) : undefined
    const inputsAt = this.times.inputs ? this.#inputsAt?.subarray(from, to) : undefined
    if ((madeAt && !read('made', madeAt)) || (inputsAt && !read('inputs', inputsAt))) {
      madeAt?.fill(0)
      inputsAt?.fill(0)
      return false
    }
    this.#code.fill(code + CODES_FROM, from, to)
    this.#setVersioned(from, to, isVersioned)
    this.#blockMissing.fill(-1, (from / BLOCK) | 0, Math.ceil(to / BLOCK))
    this.version++
    return true
  }

  #setVersioned(from: number, to: number, isVersioned: boolean): void {
    if (isVersioned) this.#versioned ??= new Uint8Array(this.#room)
    this.#versioned?.fill(Number(isVersioned), from, to)
  }

  /** True if nothing is known yet about this span of partitions. */
  isUnknown(from: number, count: number): boolean {
    const to = from + count
    return [this.#code, this.#attemptAt, this.#wipedAt].every((column) => column === undefined || isAll(column, 0, from, to))
  }

  /** True if it was made and its time is unknown. */
  #isUndated(position: number): boolean {
    return this.#code[position] !== NOT_MADE && !this.#madeAt?.[position]
  }

  /** Decides which of two materializations of the same millisecond counts. */
  breakTie(position: number, inputsAt: number, code: number, isVersioned = false): void {
    if (this.#inputsAt !== undefined) this.#inputsAt[position] = inputsAt
    this.#code[position] = code + CODES_FROM
    this.#setVersioned(position, position + 1, isVersioned)
    this.version++
  }

  attempted(position: number, at: number, failed: boolean): void {
    if (this.#isUndated(position)) this.wantsMade = true
    this.#attemptAt ??= new Float64Array(this.#room)
    this.#failed ??= new Uint8Array(this.#room)
    if (at < (this.#attemptAt[position] ?? 0)) return
    const changes = at !== this.#attemptAt[position] || Number(failed) !== this.#failed[position]
    this.#attemptAt[position] = at
    this.#failed[position] = Number(failed)
    if (changes) this.version++
  }

  wiped(position: number, at: number): void {
    if (this.#isUndated(position)) this.wantsMade = true
    this.#wipedAt ??= new Float64Array(this.#room)
    if (at <= (this.#wipedAt[position] ?? 0)) return
    this.#wipedAt[position] = at
    this.#blockMissing[(position / BLOCK) | 0] = -1
    this.version++
  }

  /** True if there is a materialization that counts. */
  isMade(position: number): boolean {
    if (this.#code[position] === NOT_MADE) return false
    return (
      this.#wipedAt === undefined || this.#wipedAt[position] === 0 || this.madeAt(position) > (this.#wipedAt[position] ?? 0)
    )
  }

  /** 0 for a partition that was not made, or whose time does not matter. */
  madeAt(position: number): number {
    return this.#madeAt?.[position] ?? 0
  }

  /** When it was made, by the clock of that time. */
  shownAt(position: number): number {
    return this.madeAt(position) - (this.#behind?.[position] ?? 0)
  }

  inputsAt(position: number): number {
    return this.#inputsAt?.[position] ?? 0
  }

  /** Negative for none. */
  code(position: number): number {
    return (this.#code[position] ?? NOT_MADE) - CODES_FROM
  }

  /** True if the data of any partition has a version. */
  get hasVersions(): boolean {
    return this.#versioned !== undefined
  }

  /** True if the data of its last materialization has a version. */
  isVersioned(position: number): boolean {
    return this.#versioned?.[position] === 1
  }

  /** True if an attempt after the last materialization failed. */
  isFailed(position: number): boolean {
    if (this.#failed === undefined || this.#failed[position] !== 1) return false
    return (this.#attemptAt?.[position] ?? 0) > this.madeAt(position)
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
        madeAt = Math.max(madeAt, this.#blockMadeAt[block] ?? 0)
        missing += this.#blockMissing[block] ?? 0
        at += BLOCK
        continue
      }
      if (this.isMade(at)) madeAt = Math.max(madeAt, this.madeAt(at))
      else missing++
      at++
    }
    return { madeAt, missing }
  }

  #count(block: number): void {
    const from = block * BLOCK
    let madeAt = 0
    let missing = 0
    for (let at = from; at < from + BLOCK; at++) {
      if (!this.isMade(at)) missing++
      else if (this.madeAt(at) > madeAt) madeAt = this.madeAt(at)
    }
    this.#blockMadeAt[block] = madeAt
    this.#blockMissing[block] = missing
  }

  /** The number of partitions, up to this position, whose last attempt failed, and how many of them are made all the same. */
  failures(count: number): { readonly all: number; readonly made: number } {
    let [all, made] = [0, 0]
    for (let at = 0; this.#failed !== undefined && at < count; at++) {
      if (!this.hasFailedLast(at)) continue
      all++
      if (this.isMade(at)) made++
    }
    return { all, made }
  }

  /** True if the last attempt failed, made before or not. Whoever wiped the partition since has done with that attempt. */
  hasFailedLast(at: number): boolean {
    return this.isFailed(at) && (this.isMade(at) || (this.#wipedAt?.[at] ?? 0) < (this.#attemptAt?.[at] ?? 0))
  }

  /** Marks those of a span that are not made, or with other code than this. */
  markOther(code: number, { from, to }: Span, marks: Uint8Array, mark: number): void {
    const own = this.#code
    const wanted = code + CODES_FROM
    // Fast path: in most assets every partition has the current code.
    if (this.#wipedAt === undefined && isAll(own, wanted, from, to + 1)) return
    for (let at = from; at <= to; at++) {
      if (!this.isMade(at) || (code >= 0 && this.code(at) >= 0 && own[at] !== wanted)) marks[at] = mark
    }
  }

  /**
   * Marks those of a span that were made before what is at the same place in `above`, which they are made from. `isOther` can say of
   * such a one that it has the same data again.
   */
  markOlder(
    above: StatusColumns,
    { from, to }: Span,
    marks: Uint8Array,
    mark: number,
    isOther?: (position: number) => boolean,
  ): void {
    const [theirs, own] = [above.#madeAt, this.#inputsAt]
    if (theirs === undefined || own === undefined) return
    for (let at = from; at <= to; at++) {
      if ((theirs[at] ?? 0) > (own[at] ?? 0) && this.isMade(at) && above.isMade(at) && (isOther?.(at) ?? true)) marks[at] = mark
    }
  }
}

function grown<T extends Float64Array | Int32Array | Uint8Array>(old: T, fresh: T): T {
  fresh.set(old)
  return fresh
}

/**
 * True if all numbers from one position up to, and without, another equal this value: the first does, and each equals the next,
 * which is a single comparison of bytes.
 */
function isAll(column: Float64Array | Int32Array | Uint8Array, value: number, from: number, to: number): boolean {
  if (from >= to) return true
  const { buffer, byteOffset, BYTES_PER_ELEMENT: size } = column
  const bytes = (to - from - 1) * size
  const start = byteOffset + from * size
  return (
    column[from] === value &&
    Buffer.compare(new Uint8Array(buffer, start, bytes), new Uint8Array(buffer, start + size, bytes)) === 0
  )
}
