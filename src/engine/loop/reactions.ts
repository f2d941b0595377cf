import type { AnyRow, Table } from '../../model/table.ts'

/** Acts in the world because of a row, once the events that made the row are durable. */
export interface Reactor {
  readonly watches: Table
  react(row: Readonly<AnyRow>): void
}

/** Rows that changed, by table. */
export type ChangedRows = Map<Table, Set<AnyRow>>

/** Shows reactors the rows that they watch. */
export class Reactions {
  readonly #reactors = new Map<Table, Reactor[]>()

  constructor(reactors: readonly Reactor[]) {
    for (const reactor of reactors) {
      const known = this.#reactors.get(reactor.watches)
      if (known === undefined) this.#reactors.set(reactor.watches, [reactor])
      else known.push(reactor)
    }
  }

  get tables(): Iterable<Table> {
    return this.#reactors.keys()
  }

  /** Notes rows for later, if a reactor watches them. */
  remember(changed: ChangedRows, table: Table, rows: ReadonlySet<AnyRow>): void {
    if (!this.#reactors.has(table)) return
    const known = changed.get(table)
    if (known === undefined) changed.set(table, new Set(rows))
    else for (const row of rows) known.add(row)
  }

  /** Shows every reactor what changed. The others still see a row at which one of them fails. */
  show(changed: ReadonlyMap<Table, ReadonlySet<AnyRow>>, onError: (error: unknown) => void): void {
    for (const [table, rows] of changed) {
      for (const reactor of this.#reactors.get(table) ?? []) {
        for (const row of rows) {
          try {
            reactor.react(row)
          } catch (error) {
            onError(error)
          }
        }
      }
    }
  }
}
