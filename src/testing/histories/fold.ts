import { orchestration } from '../../domain/index.ts'
import { coldKey } from '../../engine/fold/cold-rows.ts'
import { EventFold } from '../../engine/fold/event-fold.ts'
import { mergeRows } from '../../engine/fold/row-merge.ts'
import { State } from '../../engine/fold/state.ts'
import { itemAt } from '../../lib/collections/item-at.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { Verdict } from '../../model/event.ts'
import type { KeyPart } from '../../model/rows.ts'
import { historyIndex, parkedEvents } from '../../model/system-tables.ts'
import type { AnyRow, Table } from '../../model/table.ts'

export type Snapshot = Record<string, AnyRow[]>

/**
 * A state, its fold, and a store that is a map: what a compactor does to them without files. `fold` takes a batch,
 * `seal` does to memory what a base publish does, `restart` what a new process finds.
 */
export class Bench {
  state = new State(orchestration)
  #eventFold: EventFold
  readonly #stored = new Map<Table, Map<string, AnyRow>>()
  readonly #history = new Map<Table, AnyRow[]>()
  #publishes = 0

  /** `understands` is what this version of Servo knows; `upgrade` teaches it the rest. */
  constructor(understands: (eventType: string) => boolean = () => true) {
    const events = orchestration.events.filter((definition) => understands(definition.type))
    this.#eventFold = new EventFold({ ...orchestration, events }, this.state)
  }

  upgrade(): void {
    this.#eventFold = new EventFold(orchestration, this.state)
    this.#fetch([])
    this.#eventFold.retryUnknown()
  }

  #fetch(events: readonly Envelope[]): void {
    for (const cold of this.state.coldTables.values()) cold.forgetFetched()
    for (const { table, key } of this.#eventFold.reads(events)) {
      const parts = key.filter((part) => part !== undefined)
      this.state.coldTable(table).provide(parts, this.#stored.get(table)?.get(coldKey(parts)))
    }
  }

  fold(events: readonly Envelope[], after?: (event: Envelope, verdict: Verdict) => void): void {
    this.#fetch(events)
    for (const event of events) {
      const verdict = this.#eventFold.fold(event)
      after?.(event, verdict)
    }
  }

  foldOne(event: Envelope): Verdict {
    this.#fetch([event])
    return this.#eventFold.fold(event)
  }

  /** Everything that has ended leaves memory for history, and recent cold rows for the store. */
  seal(): void {
    this.#publishes += 1
    for (const { owner, row, state, at } of [...this.state.ended()]) {
      const ownerId: string = row[itemAt(owner.key, 0)]
      for (const table of this.state.sealed.get(owner.name) ?? []) {
        for (const sealed of [...this.state.hotTable(table).under(ownerId)]) {
          this.state.hotTable(table).unload(sealed)
          this.#history.set(table, [...(this.#history.get(table) ?? []), sealed])
        }
      }
      const version: string = row['row_version']
      this.state
        .cold(historyIndex)
        .merge({ owner: owner.name, owner_id: ownerId, state, ended_at: at, publish: this.#publishes, row_version: version })
    }
    for (const [table, cold] of this.state.coldTables) {
      const stored = this.#stored.get(table) ?? new Map<string, AnyRow>()
      this.#stored.set(table, stored)
      for (const [key, row] of cold.recent) {
        const known = stored.get(key)
        stored.set(key, known === undefined ? row : mergeRows(table, known, row))
      }
      cold.recent.clear()
    }
    for (const rows of [...this.state.hotTables.values(), ...this.state.coldTables.values()]) rows.clearChanges()
  }

  /** A new process that knows only what was stored: every row is a copy, in the order of its key. */
  restart(): void {
    const before = this.state
    this.state = new State(orchestration)
    this.#eventFold = new EventFold(orchestration, this.state)
    for (const [table, rows] of before.hotTables) {
      for (const row of sortRows(table, [...rows.all()])) this.state.hotTable(table).load(structuredClone(row))
    }
    for (const [table, rows] of before.coldTables) {
      for (const row of rows.recent.values()) this.state.coldTable(table).load(structuredClone(row))
    }
  }

  /** The parked events and what each waits for: the same for every process that folds the same events in the same order. */
  parking(): unknown[] {
    return sortRows(parkedEvents, [...this.state.hotTable(parkedEvents).all()]).map((row) => [
      row['subject'],
      row['event_id'],
      row['parked_at'],
    ])
  }

  /** All rows of all tables, wherever they are: in memory, in the store or in history. */
  rows(): Snapshot {
    const snapshot: Snapshot = {}
    for (const [table, hot] of this.state.hotTables) {
      snapshot[table.name] = sortRows(
        table,
        [...hot.all(), ...(this.#history.get(table) ?? [])].map((row) => ({ ...row })),
      )
    }
    // The time of parking only orders them.
    for (const row of snapshot[parkedEvents.name] ?? []) delete row['parked_at']
    for (const [table, cold] of this.state.coldTables) {
      // Where a thing was sealed depends on when; that it ended is in its own row.
      if (table.name === historyIndex.name) continue
      const rows = new Map(this.#stored.get(table))
      for (const [key, row] of cold.recent) {
        const known = rows.get(key)
        rows.set(key, known === undefined ? row : mergeRows(table, known, row))
      }
      snapshot[table.name] = sortRows(
        table,
        [...rows.values()].map((row) => ({ ...row })),
      )
    }
    return snapshot
  }
}

/** The rows that these events fold to, one after the other. */
export function foldAll(events: readonly Envelope[]): Snapshot {
  const bench = new Bench()
  bench.fold(events)
  return bench.rows()
}

function sortRows(table: Table, rows: AnyRow[]): AnyRow[] {
  const key = (row: AnyRow): KeyPart[] => table.key.map((name) => row[name])
  const compare = (a: KeyPart[], b: KeyPart[]): number => {
    for (const [i, part] of a.entries()) {
      const other = itemAt(b, i)
      if (part !== other) return part < other ? -1 : 1
    }
    return 0
  }
  return rows.sort((a, b) => compare(key(a), key(b)))
}
