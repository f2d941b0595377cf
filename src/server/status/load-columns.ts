import type { partitionStatus } from '../../domain/partitions/partition-status.table.ts'
import type { StatusColumns } from '../../domain/partitions/status-columns.ts'
import { ROW_GROUP_ROWS } from '../../engine/parquet-write.ts'
import type { BlockPart } from '../../engine/run-columns.ts'
import type { Digest } from '../../engine/sorted-run-index.ts'
import type { Row } from '../../model/table.ts'
import type { KeyPositions } from './key-positions.ts'

type StatusRow = Row<typeof partitionStatus>

/** The columns of the table that a status depends on. */
const named = <Name extends keyof typeof partitionStatus.columns>(name: Name): Name => name
const KEY = named('partition_key')
const MADE_AT = named('last_materialization_at')
const INPUTS_AT = named('last_materialization_inputs_at')
const CODE = named('last_materialization_code_version')
const OUTCOME = named('last_attempt_outcome')
const ATTEMPT_AT = named('last_attempt_at')
const WIPED_AT = named('wiped_at')

/** Filled again for every block. */
export class Scratch {
  readonly madeAt = new Float64Array(ROW_GROUP_ROWS)
  readonly inputsAt = new Float64Array(ROW_GROUP_ROWS)
  readonly wipedAt = new Float64Array(ROW_GROUP_ROWS)
  readonly #positions = new Int32Array(ROW_GROUP_ROWS)

  /** So many, one after the other. */
  positionsFrom(first: number, count: number): Int32Array {
    const positions = count <= ROW_GROUP_ROWS ? this.#positions : new Int32Array(count)
    for (let i = 0; i < count; i++) positions[i] = first + i
    return positions
  }
}

/** Takes over what a part of a file says. Keys that the set does not have stay on record, and have no place here. */
export function takeBlock(columns: StatusColumns, part: BlockPart, keys: KeyPositions, scratch: Scratch): void {
  const whole = keys.ofWhole(part.block.rows, part.ends)
  if (whole !== undefined && takeWhole(columns, part, whole.first, scratch)) return
  const { block, from, to } = part
  const positions = whole === undefined ? keys.of(block.texts(KEY), from, to) : scratch.positionsFrom(whole.first, block.rows)
  const madeAt = block.times(MADE_AT, scratch.madeAt)
  const inputsAt = block.times(INPUTS_AT, scratch.inputsAt)
  const wipedAt = block.times(WIPED_AT, scratch.wipedAt)
  const { codes, values } = block.words(CODE)
  const codeOf = values.map((version) => columns.codeOf(version))
  for (let row = from; row < to; row++) {
    const position = positions[row - from] as number
    if (position < 0) continue
    const made = madeAt[row] as number
    if (made > 0) {
      // Rows from before inputs were noted: what was there when it was made is all it can have read.
      columns.made(position, made, (inputsAt[row] as number) || made, codeOf[codes[row] as number] ?? -1)
    }
    if ((wipedAt[row] as number) > 0) columns.wiped(position, wipedAt[row] as number)
  }
  takeAttempts(columns, part, positions)
}

/** What a block says of itself, if that is all there is to know: its partitions were made with the same code, none was wiped or failed. */
export function takeDigest(columns: StatusColumns, { rows, columns: of }: Digest, first: number): boolean {
  const [made, code, outcome, wiped] = [of[MADE_AT], of[CODE], of[OUTCOME], of[WIPED_AT]]
  if (made?.nulls !== 0 || wiped?.nulls !== rows || code?.nulls !== 0 || code.only === undefined) return false
  if (outcome?.nulls !== rows && !(outcome?.nulls === 0 && outcome.only === 'SUCCEEDED')) return false
  columns.madeSometime(first, rows, columns.codeOf(code.only))
  return true
}

/** What is most of most assets: neighbours, all made with the same code, none of them wiped or failed since. */
function takeWhole(columns: StatusColumns, { block }: BlockPart, first: number, scratch: Scratch): boolean {
  const code = block.only(CODE)
  if (code === undefined || !block.isEmpty(WIPED_AT)) return false
  if (block.only(OUTCOME) !== 'SUCCEEDED' && !block.isEmpty(OUTCOME)) return false
  const madeAt = block.times(MADE_AT, scratch.madeAt).subarray(0, block.rows)
  const inputsAt = block.times(INPUTS_AT, scratch.inputsAt).subarray(0, block.rows)
  // NaN stands for what is not there, and is no number to compare with.
  for (let row = 0; row < block.rows; row++) if (!((madeAt[row] as number) > 0 && (inputsAt[row] as number) > 0)) return false
  return columns.madeFirst(first, madeAt, inputsAt, columns.codeOf(code))
}

/** An attempt that succeeded is as old as what it made: only the others have to be looked at. */
function takeAttempts(columns: StatusColumns, { block, from, to }: BlockPart, positions: Int32Array): void {
  const { codes, values } = block.words(OUTCOME)
  if (values.every((outcome) => outcome === 'SUCCEEDED')) return
  const at = block.times(ATTEMPT_AT)
  for (let row = from; row < to; row++) {
    const position = positions[row - from] as number
    const outcome = values[codes[row] as number]
    if (position >= 0 && outcome !== undefined) columns.attempted(position, at[row] as number, outcome === 'FAILED')
  }
}

/** The same for a row in memory. */
export function takeRow(columns: StatusColumns, row: StatusRow): void {
  const position = columns.set.positionOf(row.partition_key)
  if (position === undefined) return
  const made = row.last_materialization_at
  if (made !== null) {
    columns.made(
      position,
      made,
      row.last_materialization_inputs_at ?? made,
      columns.codeOf(row.last_materialization_code_version),
    )
  }
  if (row.wiped_at !== null) columns.wiped(position, row.wiped_at)
  if (row.last_attempt_at !== null && row.last_attempt_outcome !== 'SUCCEEDED') {
    columns.attempted(position, row.last_attempt_at, row.last_attempt_outcome === 'FAILED')
  }
}

/** What the table says of a partition that was made twice in one millisecond. */
export function settleTie(columns: StatusColumns, row: StatusRow): void {
  const position = columns.set.positionOf(row.partition_key)
  if (position === undefined || row.last_materialization_at === null) return
  columns.settle(
    position,
    row.last_materialization_inputs_at ?? row.last_materialization_at,
    columns.codeOf(row.last_materialization_code_version),
  )
}
