import { ServoError } from '../lib/error.ts'
import type { KeyPart } from '../model/rows.ts'
import type { AnyRow, Table } from '../model/table.ts'
import { type FileIndex, type Scope, type TableWriter, tableWriter } from './parquet.ts'
import { compareTuples, type KeyTuple, keyText } from './row-merge.ts'
import { bloomOf } from './sorted-run-bloom.ts'
import { FIRST_KEYS, LAST_KEY } from './sorted-run-index.ts'

/** A whole run at once, of rows in key order. */
export function encodeRun(table: Table, rows: readonly AnyRow[], scope: Scope): Uint8Array {
  const writer = runWriter(table, scope)
  writer.write(rows)
  return writer.finish()
}

export function runWriter(table: Table, scope: Scope): TableWriter {
  return tableWriter(table, scope, { codec: 'zstd', index: runFileIndex(table) })
}

/** Sees to the order of rows, and notes the keys and Bloom filters by which the run will be searched. */
function runFileIndex(table: Table): FileIndex {
  const firstKeys: KeyTuple[] = []
  let last: KeyTuple | undefined
  return {
    rowGroup(columns) {
      const parts = table.key.map((name) => columns.get(name) as readonly KeyPart[])
      const first = parts[0]!
      for (let i = 0; i < first.length; i++) {
        const key = parts.map((values) => values[i]!)
        if (last !== undefined && compareTuples(last, key) >= 0) throw notSorted(table, last, key)
        if (i === 0) firstKeys.push(key)
        last = key
      }
      return new Map([[table.key[0]!, bloomOf(first)]])
    },
    metadata: () => ({ [FIRST_KEYS]: JSON.stringify(firstKeys), [LAST_KEY]: JSON.stringify(last ?? null) }),
  }
}

function notSorted(table: Table, last: KeyTuple, key: KeyTuple): ServoError {
  return new ServoError('bug', 'run_not_sorted', `a run of ${table.name} cannot have ${keyText(key)} after ${keyText(last)}`, {
    hint: 'Rows of a run come in key order, each key once. Sort and merge them first.',
    facts: { table: table.name, last, key },
  })
}
