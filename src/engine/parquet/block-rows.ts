import { countWhile } from '../../lib/collections/binary-search.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { AnyRow } from '../../model/table.ts'
import { unreadable } from '../files/file-ref.ts'
import { compareTuples, type KeyTuple } from '../fold/row-merge.ts'
import { ColumnBlock } from './column-block.ts'
import type { SkimmedGroup } from './footer.ts'
import { decodeColumns, type Footer, parseJson, readable, type Slice } from './read.ts'
import { rowColumns } from './schema.ts'

/** Single rows of a row group: a look-up wants a few of five thousand. */
export interface BlockRows {
  readonly rows: number
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

const nothing: CellReader = () => null

export async function blockRows(footer: Footer, group: SkimmedGroup, slice: Slice): Promise<BlockRows> {
  const { table, file, plan } = footer
  const columns = rowColumns(table)
  const cells = readable(file, () => {
    const block = new ColumnBlock(footer, group, slice)
    const found = columns.map(([name]): [string, CellReader | undefined] => [
      name,
      // A missing value that must be there is found when the column is decoded whole.
      plan.tightened.includes(name) ? undefined : block.cells(name),
    ])
    return new Map(found)
  })
  const whole = [...cells].flatMap(([name, cell]) => (cell === undefined ? [name] : []))
  if (whole.length > 0) {
    for (const [name, values] of await decodeColumns(footer, group, slice, whole)) cells.set(name, (row) => values[row] ?? null)
  }
  /** Every row has a key, of texts and numbers; a file with anything else was not written by us. */
  const keyPart = (value: unknown): KeyPart => {
    if (typeof value === 'string' || typeof value === 'number') return value
    throw unreadable(file, `a key holds ${String(value)}`)
  }
  const ofKey = table.key.map((name) => cells.get(name) ?? nothing)
  const keyAt = (row: number): KeyTuple => ofKey.map((cell) => keyPart(cell(row)))
  return {
    rows: group.rows,
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
    cell: (name, at) => readable(file, () => (cells.get(name) ?? nothing)(at)),
    row(at) {
      return readable(file, () => {
        const row: AnyRow = {}
        for (const [name, { kind }] of columns) {
          const value = (cells.get(name) ?? nothing)(at)
          row[name] = kind === 'json' ? parseJson(value) : value
        }
        return row
      })
    },
  }
}
