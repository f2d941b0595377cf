import {
  attemptedIn,
  madeIn,
  type partitionStatus,
  readIn,
  type StatusRow,
  wipedIn,
} from '../../../domain/partitions/partition-status.table.ts'
import type { StatusColumns } from '../../../domain/partitions/status-columns.ts'
import type { KeyTuple } from '../../../engine/fold/row-merge.ts'
import type { ColumnBlock } from '../../../engine/parquet/column-block.ts'
import type { BlockPart } from '../../../engine/sorted/file-columns.ts'
import type { Digest } from '../../../engine/sorted/index-footer.ts'
import type { KeyEnds, KeyPositions } from '../../../partitions/key-positions.ts'

/** The columns that a status depends on. */
const columnName = <Name extends keyof typeof partitionStatus.columns>(name: Name): Name => name
const KEY = columnName('partition_key')
const MADE_AT = columnName('last_materialization_at')
const MADE_ORDER = columnName('last_materialization_order')
const INPUTS_AT = columnName('last_materialization_inputs_at')
const INPUTS_ORDER = columnName('last_materialization_inputs_order')
const CODE = columnName('last_materialization_code_version')
const VERSION = columnName('last_materialization_data_version')
const OUTCOME = columnName('last_attempt_outcome')
const ATTEMPT_AT = columnName('last_attempt_at')
const ATTEMPT_ORDER = columnName('last_attempt_order')
const WIPED_AT = columnName('wiped_at')
const WIPED_ORDER = columnName('wiped_order')

/** Neighbours in a file that are neighbours in the set, all made with the same code, none of them wiped or failed since. */
export interface AlikeRows {
  readonly first: number
  readonly count: number
  readonly code: string
  /** True if the data of each has a version; otherwise that of none has. */
  readonly isVersioned: boolean
}

/** The digest of a block, if it describes every row completely apart from timestamps. Most blocks of most assets are like that. */
export function alikeRows({ rows, columns }: Digest, ends: BlockPart['ends'], keys: KeyPositions): AlikeRows | undefined {
  const [made, code, outcome, wiped] = [columns[MADE_AT], columns[CODE], columns[OUTCOME], columns[WIPED_AT]]
  if (made?.nulls !== 0 || wiped?.nulls !== rows || code?.nulls !== 0 || code.only === undefined) return undefined
  if (outcome?.nulls !== rows && !(outcome?.nulls === 0 && outcome.only === 'SUCCEEDED')) return undefined
  // Times of rows that a clock recorded that was behind are in two columns. Files of earlier versions have none.
  if ((columns[MADE_ORDER]?.nulls ?? rows) !== rows || (columns[INPUTS_ORDER]?.nulls ?? rows) !== rows) return undefined
  // Files of earlier versions have no versions.
  const unversioned = columns[VERSION]?.nulls ?? rows
  if (unversioned !== 0 && unversioned !== rows) return undefined
  const whole = keys.ofWhole(rows, partitionEnds(ends))
  return whole && { first: whole.first, count: rows, code: code.only, isVersioned: unversioned === 0 }
}

/** Applies the digest of a block, with the times that matter. Returns false when the rows have to be read. */
export function applyAlike(
  columns: StatusColumns,
  { first, count, code, isVersioned }: AlikeRows,
  block?: ColumnBlock,
): boolean {
  const made = { code: columns.codeOf(code), isVersioned }
  return columns.madeWithSameCode(first, count, made, (what, into) => {
    block?.times(what === 'made' ? MADE_AT : INPUTS_AT, into)
    // A loop, because a cold answer calls this for every partition: `every` took a tenth of it. NaN stands for a missing value, and every
    // comparison with it is false.
    for (let row = 0; row < into.length; row++) if (!((into[row] ?? 0) > 0)) return false
    return true
  })
}

/** Applies a block of a file. Keys that the set does not have stay on record, but have no position here. */
export function applyBlock(columns: StatusColumns, part: BlockPart, keys: KeyPositions): void {
  const { block, from, to } = part
  const whole = keys.ofWhole(block.rows, partitionEnds(part.ends))
  const positions = whole === undefined ? keys.of(block.texts(KEY), from, to) : countedFrom(whole.first, block.rows)
  const madeAt = block.times(MADE_AT)
  const madeIn = inOrder(block, MADE_ORDER, madeAt)
  const inputsIn = inOrder(block, INPUTS_ORDER, block.times(INPUTS_AT))
  const wipedIn = inOrder(block, WIPED_ORDER, block.times(WIPED_AT))
  const { codes, values } = block.words(CODE)
  const codeOf = values.map((version) => columns.codeOf(version))
  const versioned = block.present(VERSION)
  for (let row = from; row < to; row++) {
    const position = positions[row - from] ?? -1
    if (position < 0) continue
    const made = madeIn[row] ?? Number.NaN
    if (made > 0) {
      const code = codeOf[codes[row] ?? -1] ?? -1
      // Rows that are older than this column: the materialization read its inputs no later than it was made.
      columns.made(position, made, inputsIn[row] || made, code, versioned[row] === 1, madeAt[row])
    }
    const wiped = wipedIn[row] ?? Number.NaN
    if (wiped > 0) columns.wiped(position, wiped)
  }
  applyAttempts(columns, part, positions)
}

/** Times in the order of the record. Only few rows have one besides that of the clock. */
export function inOrder(block: ColumnBlock, order: string, times: Float64Array): Float64Array {
  if (!block.present(order).includes(1)) return times
  return block.times(order).map((ordered, row) => (Number.isNaN(ordered) ? (times[row] ?? ordered) : ordered))
}

/** The partition column of the key; the other one is the asset. */
const partitionIn = (key: KeyTuple): string => String(key.at(-1))

const partitionEnds = (ends: BlockPart['ends']): KeyEnds | undefined =>
  ends && {
    first: partitionIn(ends.first),
    last: ends.last && partitionIn(ends.last),
    next: ends.next && partitionIn(ends.next),
  }

function countedFrom(first: number, count: number): Int32Array {
  const positions = new Int32Array(count)
  for (let i = 0; i < count; i++) positions[i] = first + i
  return positions
}

/** A successful attempt is as old as its materialization, so only the others are read. */
function applyAttempts(columns: StatusColumns, { block, from, to }: BlockPart, positions: Int32Array): void {
  const { codes, values } = block.words(OUTCOME)
  if (values.every((outcome) => outcome === 'SUCCEEDED')) return
  const at = inOrder(block, ATTEMPT_ORDER, block.times(ATTEMPT_AT))
  for (let row = from; row < to; row++) {
    const position = positions[row - from] ?? -1
    const outcome = values[codes[row] ?? -1]
    if (position >= 0 && outcome !== undefined) columns.attempted(position, at[row] ?? Number.NaN, outcome === 'FAILED')
  }
}

/** The same for a row in memory. */
export function applyRow(columns: StatusColumns, row: StatusRow): void {
  const position = columns.set.positionOf(row.partition_key)
  if (position === undefined) return
  if (row.last_materialization_at !== null) {
    columns.made(
      position,
      madeIn(row),
      readIn(row),
      columns.codeOf(row.last_materialization_code_version),
      row.last_materialization_data_version !== null,
      row.last_materialization_at,
    )
  }
  if (row.wiped_at !== null) columns.wiped(position, wipedIn(row))
  if (row.last_attempt_at !== null && row.last_attempt_outcome !== 'SUCCEEDED') {
    columns.attempted(position, attemptedIn(row), row.last_attempt_outcome === 'FAILED')
  }
}

/** The row decides about a partition that was made twice in one millisecond. */
export function breakTie(columns: StatusColumns, row: StatusRow): void {
  const position = columns.set.positionOf(row.partition_key)
  if (position === undefined || row.last_materialization_at === null) return
  columns.breakTie(
    position,
    readIn(row),
    columns.codeOf(row.last_materialization_code_version),
    row.last_materialization_data_version !== null,
  )
}
