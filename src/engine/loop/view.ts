import type { Columns } from '../../model/column.ts'
import type { Registry } from '../../model/event.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { RowOf, Table } from '../../model/table.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { EventFold } from '../fold/event-fold.ts'
import { State } from '../fold/state.ts'
import { type EndedWork, HistoryReader } from '../history/history-reader.ts'
import { Archives } from '../ledger/archives.ts'
import { unsettledAndPacked } from '../ledger/days.ts'
import { readUndamaged } from '../ledger/read-segment.ts'
import type { Manifest } from '../manifest/manifest.ts'
import type { RecordedOrder } from '../manifest/recorded-order.ts'
import { newestManifest } from '../manifest/stored-manifests.ts'
import { Paths, type Scope, segmentUlid } from '../paths.ts'
import { FoldedSegments } from '../publish/folded-segments.ts'
import { loadState, readDelta } from '../publish/load-state.ts'
import { type ColdRowsToRead, ColdStore } from '../sorted/cold-store.ts'

export interface ViewOptions {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly registry: Registry
  readonly clock: Clock
}

/** The limits of a fresh read. Past a limit it returns the state folded so far, and reports that. */
export interface FreshLimits {
  readonly maxEvents: number
  readonly maxTimeMs: number
}

const freshLimits: FreshLimits = { maxEvents: 5_000, maxTimeMs: 200 }

/** The tables as one manifest has them, for readers. Refreshing reads only what is new. */
export class View {
  readonly #options: ViewOptions
  readonly #paths: Paths
  readonly #archives: Archives
  readonly #cold: ColdStore
  readonly #history: HistoryReader
  #manifest: Manifest
  #state: State
  /** Kept from one fresh read to the next: only what was published since has to be learnt. */
  readonly #folded: FoldedSegments

  private constructor(options: ViewOptions, manifest: Manifest, state: State) {
    this.#options = options
    this.#paths = new Paths(options.scope)
    this.#archives = new Archives({ store: options.store, paths: this.#paths })
    this.#cold = new ColdStore({
      store: options.store,
      filesOf: (table) => this.#manifest.sorted_files[table.name] ?? [],
    })
    this.#history = new HistoryReader(options.store)
    this.#manifest = manifest
    this.#state = state
    this.#folded = new FoldedSegments(options.store, manifest)
  }

  static async open(options: ViewOptions): Promise<View> {
    const manifest = await newestManifest(options.store, new Paths(options.scope), options.scope)
    return new View(options, manifest, await loadState(options.store, options.registry, manifest))
  }

  get manifest(): Manifest {
    return this.#manifest
  }

  /** Rows of unfinished work. */
  get state(): State {
    return this.#state
  }

  /** What has ended, as the manifest of this view has it. */
  get history(): EndedWork {
    return this.#history.at(this.#manifest)
  }

  /** Moves to the newest manifest. False if this view has it already. */
  async refresh(): Promise<boolean> {
    const { store, scope, registry } = this.#options
    const newest = await newestManifest(store, this.#paths, scope, this.#manifest.number)
    if (newest.number <= this.#manifest.number) return false
    const held = this.#manifest.publish
    if (newest.base.publish > held + 1) {
      this.#state = await loadState(store, registry, newest)
    } else {
      const followsBase = newest.base.publish === held + 1
      const missing = newest.l0.filter((delta) => delta.publish > held).map((delta) => delta.tables)
      const deltas = await Promise.all(
        (followsBase ? [newest.base.delta, ...missing] : missing).map((tables) => readDelta(store, this.#state, tables)),
      )
      deltas.forEach((apply, i) => {
        apply()
        if (followsBase && i === 0) this.#leaveSealed()
      })
    }
    this.#manifest = newest
    this.#folded.follow(newest)
    return true
  }

  /** A cold row by its key, whatever files hold it. */
  async lookup<C extends Columns>(table: Table<C>, ...key: KeyPart[]): Promise<RowOf<C> | undefined> {
    const [row] = await this.#cold.lookup(table, this.#state, [key])
    return row
  }

  /** A cold table for a reader that goes through many of its rows, as this state has it: the view's own, or a fresh one. */
  coldRows(table: Table, state: State = this.#state): ColdRowsToRead {
    return this.#cold.rows(table, state)
  }

  /**
   * The state with what the ledger holds beyond the newest manifest folded in, in a fork of its own. `complete` is
   * false when a limit was reached first, or a segment is damaged.
   */
  async fresh(limits: Partial<FreshLimits> = {}): Promise<{ state: State; events: number; complete: boolean }> {
    const { maxEvents, maxTimeMs } = { ...freshLimits, ...limits }
    const { store, scope, registry, clock } = this.#options
    const ledger = { store, scope, paths: this.#paths, archives: this.#archives }
    const started = clock.now()
    await this.refresh()
    const fork = new State(registry, this.#state)
    const eventFold = new EventFold(registry, fork)
    const tail = await this.#tail()
    let events = 0
    let complete = true
    let damaged = false
    for (const ulid of tail) {
      complete &&= events < maxEvents && clock.now() - started <= maxTimeMs
      if (!complete) break
      const segment = await readUndamaged(ledger, ulid, () => {
        damaged = true
      })
      if (segment === undefined) continue
      await this.#cold.provide(fork, eventFold.reads(segment.events))
      for (const event of segment.events) eventFold.fold(event)
      events += segment.events.length
    }
    return { state: fork, events, complete: complete && !damaged }
  }

  /** Everything on record as of this moment, in order. */
  async recordedOrder(): Promise<RecordedOrder> {
    await this.refresh()
    return { manifest: this.#manifest, tail: await this.#tail() }
  }

  async #tail(): Promise<string[]> {
    const ulids: string[] = []
    const { store } = this.#options
    const listed = unsettledAndPacked(store, this.#paths, this.#manifest, { archives: this.#archives })
    for await (const path of listed) {
      const ulid = segmentUlid(path)
      if (ulid !== undefined) ulids.push(ulid)
    }
    return await this.#folded.fresh(ulids)
  }

  /** The rows that the base sealed are in history now, and recent cold rows are in its sorted files. */
  #leaveSealed(): void {
    for (const [ownerName, tables] of this.#state.sealed) {
      const owners = this.#state.hotTable(this.#state.tableNamed(ownerName))
      for (const table of tables) {
        const hot = this.#state.hotTable(table)
        hot.unloadUnder(hot.firstKeys().filter((ownerId) => owners.get(ownerId) === undefined))
      }
    }
    for (const cold of this.#state.coldTables.values()) cold.takeRecent()
  }
}
