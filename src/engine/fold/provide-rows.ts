import type { Read } from '../../model/event.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { AnyRow, Table } from '../../model/table.ts'
import { coldKey } from './cold-rows.ts'
import type { State } from './state.ts'

/** The keys of each table, each once. */
export function keysByTable(reads: readonly Read[]): Map<Table, Map<string, KeyPart[]>> {
  const byTable = new Map<Table, Map<string, KeyPart[]>>()
  for (const { table, key } of reads) {
    let keys = byTable.get(table)
    if (keys === undefined) {
      keys = new Map()
      byTable.set(table, keys)
    }
    keys.set(coldKey(key), key.length === 1 ? [key[0]] : key.filter((part) => part !== undefined))
  }
  return byTable
}

/** Gives the next folds the stored rows that they announced, and forgets those of the folds before. */
export async function provideRows(
  state: State,
  reads: readonly Read[],
  stored: (table: Table, keys: readonly KeyPart[][]) => Promise<(AnyRow | undefined)[]>,
): Promise<void> {
  const byTable = keysByTable(reads)
  for (const cold of state.coldTables.values()) cold.forgetFetched()
  await Promise.all(
    [...byTable].map(async ([table, keys]) => {
      const list = [...keys.values()]
      const rows = await stored(table, list)
      const cold = state.coldTable(table)
      for (const [i, key] of list.entries()) cold.provide(key, rows[i])
    }),
  )
}
