import { setImmediate as pause } from 'node:timers/promises'
import { ServoError } from '../../lib/error.ts'
import type { AnyRow, Table } from '../../model/table.ts'
import { compareKeyParts, keyText } from '../fold/row-merge.ts'
import { valueCopier } from '../parquet/column-values.ts'
import { type FileShape, rowColumns } from '../parquet/schema.ts'
import { type CopiedColumns, endsGroup, groupRowsOf, groupWriter } from '../parquet/write.ts'
import type { Scope } from '../paths.ts'
import { keyIndex } from '../sorted/write-file.ts'

/**
 * A file that is still to be encoded: a copy of its rows and all that encoding them needs, as plain data, because encoding is half the
 * work of a publish and another thread may do it. Rows come in any order, each key once.
 */
export interface FileCopy {
  readonly table: FileShape
  readonly scope: Scope
  readonly codec: 'snappy' | 'zstd'
  /** True for a sorted file, in which rows will be looked up by key. */
  readonly isSortedFile: boolean
  readonly rows: number
  /** A column with one value has it in all rows, as most columns do in a batch of similar work. */
  readonly columns: CopiedColumns
}

export interface FileToCopy {
  readonly table: Table & Pick<FileShape, 'history'>
  readonly scope: Scope
  readonly codec?: FileCopy['codec']
  readonly isSortedFile?: boolean
  readonly rows: Iterable<AnyRow>
}

export function copyFile(file: FileToCopy): FileCopy {
  const rows = [...file.rows]
  return {
    ...headOf(file, rows),
    columns: rowColumns(file.table).map(([column]) => copyColumn(rows, valueCopier(file.table, column))),
  }
}

/** Cells that are copied in one turn: a millisecond or two. */
const CELLS_IN_A_TURN = 20_000

/** The same for rows that nobody changes any more, which may be many: others have their turn in between. */
export async function copyInTurns(file: FileToCopy): Promise<FileCopy> {
  const rows = [...file.rows]
  const columns: unknown[][] = []
  let cells = 0
  for (const [column] of rowColumns(file.table)) {
    columns.push(copyColumn(rows, valueCopier(file.table, column)))
    cells += rows.length
    if (cells < CELLS_IN_A_TURN) continue
    await pause()
    cells = 0
  }
  return { ...headOf(file, rows), columns }
}

const headOf = (
  { table, scope, codec = 'snappy', isSortedFile = false }: FileToCopy,
  rows: readonly AnyRow[],
): Omit<FileCopy, 'columns'> => ({ table: shapeOf(table), scope, codec, isSortedFile, rows: rows.length })

/** The part of a table that can go to another thread. */
export function shapeOf({ name, key, columns, stored, digest, history }: FileShape): FileShape {
  return { name, key, columns, stored, ...(digest !== undefined && { digest }), ...(history !== undefined && { history }) }
}

function copyColumn(rows: readonly AnyRow[], copyOf: (row: AnyRow) => unknown): unknown[] {
  const values: unknown[] = []
  let isSame = true
  for (const row of rows) {
    const value = copyOf(row)
    isSame &&= values.length === 0 || value === values[0]
    values.push(value)
  }
  return isSame ? values.slice(0, 1) : values
}

/** Encodes a file in steps of one row group, so that other work can have its turn in between. */
export function* encodeFile(copy: FileCopy): Generator<void, Uint8Array<ArrayBuffer>> {
  const { table, scope, codec, isSortedFile, rows } = copy
  const writer = groupWriter(table, scope, { codec, ...(isSortedFile && { index: keyIndex(table) }) })
  const order = keyOrder(copy)
  for (let start = 0, end: number; start < rows; start = end) {
    end = groupEnd(copy, order, start)
    writer.write(
      copy.columns.map((values) => (values.length === 1 ? values : order(values, start, end))),
      end - start,
    )
    yield
  }
  return writer.finish()
}

/** Where the row group that begins at `start` ends. */
function groupEnd({ table, columns, rows }: FileCopy, order: SortedSlice, start: number): number {
  const most = Math.min(start + groupRowsOf(table), rows)
  const owners = columns[rowColumns(table).findIndex(([name]) => name === table.key[0])]!
  if (table.digest === undefined || owners.length === 1) return most
  const own = order(owners, start, most)
  const end = own.findIndex((next, i) => i > 0 && endsGroup(table, i, own[i - 1], next))
  return end < 0 ? most : start + end
}

type SortedSlice = (values: readonly unknown[], start: number, end: number) => unknown[]

/** A function that returns a part of a column in the order of keys. */
function keyOrder({ table, columns, rows }: FileCopy): SortedSlice {
  const names = rowColumns(table).map(([name]) => name)
  // Key parts that are the same in all rows decide nothing.
  const keys = table.key.map((name) => columns[names.indexOf(name)]!).filter((values) => values.length > 1)
  const compare = (a: number, b: number): number => {
    for (const values of keys) {
      const order = compareKeyParts(values[a], values[b])
      if (order !== 0) return order
    }
    return 0
  }
  const places = Array.from({ length: rows }, (_, row) => row)
  const isSorted = places.every((row) => row === 0 || compare(row - 1, row) < 0)
  if (isSorted) return (values, start, end) => values.slice(start, end)
  places.sort(compare)
  for (let i = 1; i < rows; i++) {
    const row = places[i]!
    if (compare(places[i - 1]!, row) === 0)
      throw keyTwice(
        table,
        keys.map((values) => values[row]),
      )
  }
  return (values, start, end) => places.slice(start, end).map((row) => values[row])
}

function keyTwice(table: FileShape, key: readonly unknown[]): ServoError {
  return new ServoError('bug', 'key_twice', `a file of ${table.name} would have two rows with the key ${keyText(key)}`, {
    hint: 'Please report this with the message above; nothing is lost, the ledger has all of it.',
    facts: { table: table.name, key },
  })
}
