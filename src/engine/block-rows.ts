import type { KeyPart } from '../model/rows.ts'
import type { AnyRow } from '../model/table.ts'
import { ColumnBlock } from './column-block.ts'
import type { SkimmedGroup } from './parquet-footer.ts'
import { decodeColumns, type Footer, parseJson, readable, type Slice } from './parquet-read.ts'
import { rowColumns } from './parquet-schema.ts'
import { compareParts, type KeyTuple } from './row-merge.ts'

/** Single rows of a row group: a look-up wants a few of five thousand. */
export interface BlockRows {
  /** Where the row with a key is, or -1. */
  find(key: KeyTuple): number
  row(at: number): AnyRow
}

type Cell = (row: number) => unknown

export async function blockRows(footer: Footer, group: SkimmedGroup, slice: Slice): Promise<BlockRows> {
  const { table, file, plan } = footer
  const columns = rowColumns(table)
  const cells = readable(file, () => {
    const block = new ColumnBlock(footer, group, slice)
    const found = columns.map(([name]): [string, Cell | undefined] => [
      name,
      // Whether a value is missing that must be there is seen by whoever decodes them all.
      plan.tightened.includes(name) ? undefined : block.cells(name),
    ])
    return new Map(found)
  })
  const whole = [...cells].flatMap(([name, cell]) => (cell === undefined ? [name] : []))
  if (whole.length > 0) {
    for (const [name, values] of await decodeColumns(footer, group, slice, whole)) cells.set(name, (row) => values[row] ?? null)
  }
  const ofKey = table.key.map((name) => cells.get(name) as Cell)
  return {
    find(key) {
      let low = 0
      let high = group.rows - 1
      while (low <= high) {
        const middle = (low + high) >>> 1
        let order = 0
        for (let i = 0; i < ofKey.length && order === 0; i++) order = compareParts(ofKey[i]!(middle) as KeyPart, key[i]!)
        if (order === 0) return middle
        if (order < 0) low = middle + 1
        else high = middle - 1
      }
      return -1
    },
    row(at) {
      return readable(file, () => {
        const row: AnyRow = {}
        for (const [name, { kind }] of columns) {
          const value = cells.get(name)!(at)
          row[name] = kind === 'json' ? parseJson(value) : value
        }
        return row
      })
    },
  }
}
