import type { Read } from '../../model/event.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { AnyRow, Table } from '../../model/table.ts'
import type { State } from './state.ts'

/** Gives the next folds the stored rows that they announced, and forgets those of the folds before. */
export async function provideRows(
  state: State,
  reads: readonly Read[],
  stored: (table: Table, keys: readonly KeyPart[][]) => Promise<(AnyRow | undefined)[]>,
): Promise<void> {
  const byTable = new Map<Table, Map<string, KeyPart[]>>()
  for (const { table, key } of reads) {
    const parts = key.filter((part) => part !== undefined)
    const keys = byTable.get(table) ?? new Map<string, KeyPart[]>()
    keys.set(parts.join('\0'), parts)
    byTable.set(table, keys)
  }
  for (const cold of state.coldTables.values()) cold.forgetFetched()
  await Promise.all(
    [...byTable].map(async ([table, keys]) => {
      const list = [...keys.values()]
      const rows = await stored(table, list)
      for (const [i, key] of list.entries()) state.coldTable(table).provide(key, rows[i])
    }),
  )
}
