import { assert } from '../../lib/assert.ts'
import type { Columns } from '../../model/column.ts'
import type { Registry } from '../../model/event.ts'
import type { ColdRows, HotRows, Rows } from '../../model/rows.ts'
import { systemTables } from '../../model/system-tables.ts'
import type { AnyRow, RowOf, Table } from '../../model/table.ts'
import { ColdTable } from './cold-rows.ts'
import { HotTable } from './hot-rows.ts'
import { firstOfKey } from './row-merge.ts'

/** All tables of a registry, the engine's own included. */
export const allTables = (registry: Registry): readonly Table[] => [...registry.tables, ...systemTables]

/**
 * Everything in memory: the rows of unfinished work, and what is new since the last base. With a `parent` it is a fork:
 * it sees the parent's rows and keeps its own changes to itself.
 */
export class State implements Rows {
  readonly hotTables = new Map<Table, HotTable>()
  readonly coldTables = new Map<Table, ColdTable>()
  /** By the name of an owner: the tables whose rows go to history when the owner's row has ended. */
  readonly sealed = new Map<string, Table[]>()
  readonly #byName = new Map<string, Table>()

  constructor(registry: Registry, parent?: State) {
    for (const table of allTables(registry)) {
      this.#byName.set(table.name, table)
      if (table.storage.kind === 'cold') this.coldTables.set(table, new ColdTable(table, parent?.coldTable(table)))
      else {
        this.hotTables.set(table, new HotTable(table, parent?.hotTable(table)))
        const owner = table.storage.sealedWith
        if (owner !== undefined) this.sealed.set(owner, [...(this.sealed.get(owner) ?? []), table])
      }
    }
  }

  tableNamed(name: string): Table {
    const table = this.#byName.get(name)
    assert(table !== undefined, `there is no table ${name}`)
    return table
  }

  hot<C extends Columns>(table: Table<C>): HotRows<RowOf<C>> {
    // Tables hold rows of every shape; the rows of a table have its columns.
    return this.hotTable(table) as unknown as HotRows<RowOf<C>>
  }

  cold<C extends Columns>(table: Table<C>): ColdRows<RowOf<C>> {
    return this.coldTable(table) as unknown as ColdRows<RowOf<C>>
  }

  hotTable(table: Table): HotTable {
    const rows = this.hotTables.get(table)
    assert(rows !== undefined, `${table.name} is not a hot table of this registry`)
    return rows
  }

  coldTable(table: Table): ColdTable {
    const rows = this.coldTables.get(table)
    assert(rows !== undefined, `${table.name} is not a cold table of this registry`)
    return rows
  }

  /** True if anything changed since the last publish. */
  hasChanges(): boolean {
    for (const rows of this.hotTables.values()) if (rows.dirty.size > 0 || rows.removed.size > 0) return true
    for (const rows of this.coldTables.values()) if (rows.dirty.size > 0) return true
    return false
  }

  /** Owners that have ended and are still in memory. */
  *ended(): Iterable<{ owner: Table; ownerId: string; row: AnyRow; state: string; at: number }> {
    for (const ownerName of this.sealed.keys()) {
      const owner = this.tableNamed(ownerName)
      const id = firstOfKey(owner)
      for (const row of this.hotTable(owner).all()) {
        const ended = owner.ended?.(row as RowOf<Columns>)
        if (ended !== undefined) yield { owner, ownerId: row[id], row, ...ended }
      }
    }
  }

  /** Rows in memory, for limits and for showing that memory follows active work. */
  size(): number {
    let rows = 0
    for (const table of this.hotTables.values()) rows += table.size
    for (const table of this.coldTables.values()) rows += table.recent.size
    return rows
  }
}
