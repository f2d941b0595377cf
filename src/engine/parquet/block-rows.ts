import { assert } from '../../lib/assert.ts'
import { countWhile } from '../../lib/collections/binary-search.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { AnyRow } from '../../model/table.ts'
import { unreadable } from '../files/file-ref.ts'
import { compareTuples, type KeyTuple } from '../fold/row-merge.ts'
import { ColumnBlock } from './column-block.ts'
import type { SkimmedGroup } from './footer.ts'
import { decodeColumns, type Footer, parseJson, readable, type Slice } from './read.ts'
import { rowColumns } from './schema.ts'

/**
 * Single rows of a row group: a look-up wants a few of five thousand. Columns are decoded when they are first asked for. Lists, maps and
 * numbers are left to `hyparquet`, which takes several turns: `ready` must have been awaited for them.
 */
export interface BlockRows {
  readonly rows: number
  /** Decodes some columns, or all, as far as that takes several turns. */
  ready(names?: readonly string[]): Promise<void>
  /** Where the row with a key is, or -1. */
  find(key: KeyTuple): number
  /** The first row whose key is not before these first parts of a key, and the first whose key is after them. */
  range(prefix: KeyTuple): { readonly from: number; readonly to: number }
  key(at: number): KeyTuple
  /** One value. JSON is text. */
  cell(name: string, at: number): unknown
  row(at: number): AnyRow
}

type CellReader = (row: number) => unknown

/** A row group with everything ready. */
export async function blockRows(footer: Footer, group: SkimmedGroup, slice: Slice): Promise<BlockRows> {
  const rows = lazyRows(footer, group, slice)
  await rows.ready()
  return rows
}

/** A row group with the key ready, and nothing else. */
export async function blockKeys(footer: Footer, group: SkimmedGroup, slice: Slice): Promise<BlockRows> {
  const rows = lazyRows(footer, group, slice)
  await rows.ready(footer.table.key)
  return rows
}

function lazyRows(footer: Footer, group: SkimmedGroup, slice: Slice): BlockRows {
  const { table, file, plan } = footer
  const columns = rowColumns(table)
  const block = new ColumnBlock(footer, group, slice)
  const known = new Map<string, CellReader>()

  /** Undefined if the column has to be decoded whole. A missing value that must be there is found that way too. */
  const singleCells = (name: string): CellReader | undefined => {
    const found = known.get(name) ?? (plan.tightened.includes(name) ? undefined : readable(file, () => block.cells(name)))
    if (found !== undefined) known.set(name, found)
    return found
  }
  const cells = (name: string): CellReader => {
    const found = singleCells(name)
    assert(found !== undefined, `${table.name}.${name} is not ready`)
    return found
  }
  /** Every row has a key, of texts and numbers; a file with anything else was not written by us. */
  const keyPart = (value: unknown): KeyPart => {
    if (typeof value === 'string' || typeof value === 'number') return value
    throw unreadable(file, `a key holds ${String(value)}`)
  }
  const keyAt = (row: number): KeyTuple => readable(file, () => table.key.map((name) => keyPart(cells(name)(row))))
  return {
    rows: group.rows,
    async ready(names = columns.map(([name]) => name)) {
      const whole = names.filter((name) => name in table.stored && singleCells(name) === undefined)
      if (whole.length === 0) return
      for (const [name, values] of await decodeColumns(footer, group, slice, whole))
        known.set(name, (row) => values[row] ?? null)
    },
    find(key) {
      const order = (row: number): number => compareTuples(keyAt(row), key)
      const at = countWhile(group.rows, (row) => order(row) < 0)
      return at < group.rows && order(at) === 0 ? at : -1
    },
    range: (prefix) => ({
      from: countWhile(group.rows, (row) => compareTuples(keyAt(row), prefix) < 0),
      to: countWhile(group.rows, (row) => compareTuples(keyAt(row), prefix) <= 0),
    }),
    key: keyAt,
    cell: (name, at) => readable(file, () => cells(name)(at)),
    row: (at) =>
      readable(file, () => {
        const row: AnyRow = {}
        for (const [name, { kind }] of columns) {
          const value = cells(name)(at)
          row[name] = kind === 'json' ? parseJson(value) : value
        }
        return row
      }),
  }
}
