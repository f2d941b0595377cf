import { messageOf, ServoError } from '../../lib/error.ts'
import { Mutex } from '../../lib/mutex.ts'
import { toIso, toMs } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import type { Columns } from '../../model/column.ts'
import type { Registry } from '../../model/event.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { RowOf, Table } from '../../model/table.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { State } from '../fold/state.ts'
import { type EndedWork, HistoryReader } from '../history/history-reader.ts'
import type { SealedRows } from '../history/sealed-rows.ts'
import { Archives } from '../ledger/archives.ts'
import { type Consumed, durableSoFar } from '../ledger/consumed.ts'
import { DayClosing, daysToSettle } from '../ledger/day-closing.ts'
import { foldersOfDays, openDayFrom } from '../ledger/days.ts'
import { checkLeads, type Leading } from '../ledger/leading.ts'
import type { Damage, LedgerPlace } from '../ledger/read-segment.ts'
import { defaultL0Limits, type HistoryRule, type L0Limits, type Manifest, type OrderedPublish } from '../manifest/manifest.ts'
import { markOf } from '../manifest/published-mark.ts'
import type { RecordedOrder } from '../manifest/recorded-order.ts'
import { newestManifest } from '../manifest/stored-manifests.ts'
import { Paths, type Scope } from '../paths.ts'
import { type ColdRowsToRead, ColdStore } from '../sorted/cold-store.ts'
import { isBaseDue } from './base-due.ts'
import { takeNextEpoch } from './create-manifest.ts'
import { type Draft, draftBase, draftDelta, type Pending } from './draft.ts'
import type { DraftInput } from './draft-input.ts'
import { type Encoder, encoderHere } from './encoder.ts'
import { Fence } from './fence.ts'
import { historyRule } from './keep-history.ts'
import { type FoldAhead, LedgerFold } from './ledger-fold.ts'
import { loadState } from './load-state.ts'
import { type Newest, newestReadable } from './newest-readable.ts'
import { checkRetention, defaultRetention, type Retention } from './retention.ts'

export interface CompactorOptions {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly registry: Registry
  readonly clock: Pick<AlarmClock, 'now' | 'monotonic'>
  /** Names this process in manifests, for people. */
  readonly name: string
  readonly limits?: Partial<L0Limits>
  readonly retention?: Retention
  /** How history is merged. Tests choose small numbers. */
  readonly history?: Partial<HistoryRule>
  readonly ahead?: FoldAhead
  /** The lease of a leader. With it, the compactor takes its epoch when it opens, and publishes nothing once another process leads. */
  readonly lease?: Leading
  /** Encodes large files; a process has one encoder for all its compactors. */
  readonly encoder?: Encoder
}

/**
 * Folds the ledger and publishes the rows as tables; nothing else writes state. Any number of compactors may run: each takes a higher
 * epoch before it writes. A compactor that was overtaken finds the next manifest taken, throws `fenced`, and must be replaced by a new one.
 *
 * What it is made of: `LedgerFold` folds segments into memory, `ColdStore` finds rows that are not in memory, `Fence` lets only one
 * compactor write. A publish is drafted from memory in one turn, waits until its segments are durable, and is written; one that
 * could not be written is tried again before any other.
 */
export class Compactor {
  readonly state: State
  /** Folds segments, and knows what of them is not published yet. */
  readonly fold: LedgerFold
  readonly #options: CompactorOptions
  readonly #ledger: LedgerPlace
  readonly #fence: Fence
  readonly #cold: ColdStore
  /** Rows that a base is sealing: they have left memory, and no manifest names their files yet. */
  readonly #sealing: SealedRows = new Map()
  readonly #history: HistoryReader
  readonly #days: DayClosing
  readonly #limits: L0Limits
  /** Recorded with each base, so that a replay follows the rules of that time. */
  readonly #rules: Pick<DraftInput, 'retention' | 'history'>
  readonly #turn = new Mutex()
  #manifest: Manifest
  /** What a leader found when it opened the state. */
  #opened: Newest | undefined
  #publishing: Promise<unknown> | undefined
  /** Tried again before anything else is published. */
  #pending: Pending | undefined
  /** The segments of a publish that is drafted, and that no manifest names yet. */
  #drafted: readonly Consumed[] = []

  private constructor(options: CompactorOptions, manifest: Manifest, state: State, days: readonly string[]) {
    const { store, scope, registry } = options
    this.#options = options
    this.#manifest = manifest
    this.state = state
    this.#limits = { ...defaultL0Limits, ...options.limits }
    this.#rules = {
      retention: checkRetention({ ...defaultRetention, ...options.retention }),
      history: { ...historyRule, ...options.history },
    }
    const place = { store, scope, paths: new Paths(scope) }
    this.#ledger = { ...place, archives: new Archives(place) }
    this.#days = new DayClosing(days)
    this.#days.note(manifest)
    this.#fence = new Fence(this.#ledger)
    this.#cold = new ColdStore({
      store,
      filesOf: (table) => this.#manifest.sorted_files[table.name] ?? [],
      explain: (error) => this.#fence.explain(error, this.#manifest),
    })
    this.#history = new HistoryReader(store)
    const parts = {
      state,
      registry,
      ledger: this.#ledger,
      days: this.#days,
      fence: this.#fence,
      cold: this.#cold,
      turn: this.#turn,
    }
    this.fold = new LedgerFold({ ...parts, beforeOthers: () => options.ahead?.closeSegment() }, manifest)
  }

  static async open(options: CompactorOptions): Promise<Compactor> {
    const { store, scope, lease, clock } = options
    const paths = new Paths(scope)
    const [opened, days] = await Promise.all([
      lease === undefined
        ? newestManifest(store, paths, scope).then((manifest) => ({ manifest }))
        : newestReadable({ store, scope, paths }, lease.kept),
      foldersOfDays(store, paths),
    ])
    const manifest = 'found' in opened ? await takeNextEpoch(options, paths, opened.manifest, clock.now()) : opened.manifest
    // Earlier versions did not record the first publish of a day: any day may have been in the first of all.
    const first_publishes = manifest.first_publishes ?? Object.fromEntries(days.map((day) => [day, 0]))
    const compactor = await Compactor.at(options, { ...manifest, first_publishes }, days)
    if ('found' in opened) {
      compactor.#opened = opened
      compactor.#fence.taken()
      await compactor.#keepMark()
    }
    return compactor
  }

  /** What is damaged or missing, as far as it was noticed since this was opened with a lease. Asked once, when the ledger is folded. */
  takeDamage(): readonly Damage[] {
    if (this.#opened === undefined) return []
    const { found, since, named } = this.#opened
    this.#opened = undefined
    return [...found, ...this.fold.takeDamage(since, named)]
  }

  /** It only helps to notice what goes missing later, so nothing fails if this does. */
  async #keepMark(): Promise<void> {
    await this.#options.lease?.keep?.(markOf(this.#manifest)).catch(() => undefined)
  }

  /** Opens the state of one manifest. */
  static async at(options: CompactorOptions, manifest: Manifest, days: readonly string[] = []): Promise<Compactor> {
    const compactor = new Compactor(options, manifest, await loadState(options.store, options.registry, manifest), days)
    await compactor.fold.retryUnknown()
    return compactor
  }

  get manifest(): Manifest {
    return this.#manifest
  }

  /** The first day from this one on in which segments may be written. */
  openFrom(day: string): string {
    return openDayFrom(this.#manifest, day)
  }

  /** Looks for segments that were not announced. Returns how many were folded. */
  catchUp(options: { settledToo?: boolean; maxSegments?: number } = {}): Promise<number> {
    const looked = options.settledToo ? { ...this.#manifest, settled_days: [] } : this.#manifest
    return this.fold.catchUp(looked, options.maxSegments)
  }

  /** A cold row by its key, with what is not published yet. */
  async lookup<C extends Columns>(table: Table<C>, ...key: KeyPart[]): Promise<RowOf<C> | undefined> {
    const [row] = await this.lookupAll(table, [key])
    return row
  }

  /** The same for many keys, each row in the place of its key. */
  lookupAll<C extends Columns>(table: Table<C>, keys: readonly KeyPart[][]): Promise<(RowOf<C> | undefined)[]> {
    return this.#cold.lookup(table, this.state, keys)
  }

  /** A cold table for a reader that goes through many of its rows. */
  coldRows(table: Table): ColdRowsToRead {
    return this.#cold.rows(table, this.state)
  }

  /** What has ended, as of this moment. */
  get history(): EndedWork {
    return this.#history.at(this.#manifest, this.#sealing)
  }

  /** Everything on record as of this moment, in order. */
  recordedOrder(): RecordedOrder {
    return { manifest: this.#manifest, tail: durableSoFar([...this.#drafted, ...this.fold.unpublishedSegments]) }
  }

  /** Writes what changed. One publish at a time, later calls wait their turn; folds may go on meanwhile. */
  publish(options: { kind?: 'delta' | 'base' } = {}): Promise<'published' | 'nothing'> {
    return this.#alone(() => this.#publish(options.kind))
  }

  /**
   * Changes what the manifest says of the ledger, between two publishes. `next` may return a manifest to be written now, or one that goes
   * with the next publish. False if a publish has to be tried again first.
   */
  amend(next: (manifest: Manifest, nowMs: number) => Draft | Manifest): Promise<boolean> {
    return this.#alone(async () => {
      this.#fence.check()
      if (this.#pending !== undefined) return false
      const now = this.#options.clock.now()
      this.#manifest = await this.#fence.takeEpoch(this.#manifest, this.#options.name, now)
      const amended = next(this.#manifest, now)
      if ('files' in amended) {
        this.#pending = { finish: () => amended }
        await this.#writePending(this.#pending)
      } else this.#manifest = amended
      return true
    })
  }

  async #alone<T>(work: () => Promise<T>): Promise<T> {
    while (this.#publishing !== undefined) await this.#publishing.catch(() => undefined)
    const working = work()
    this.#publishing = working
    return await working.finally(() => {
      this.#publishing = undefined
    })
  }

  /**
   * Before this process writes. Segments that are not published are ordered by their names, and a clock that is behind those of
   * earlier processes would name new segments before them: then their order is recorded first.
   */
  async keepOrder(): Promise<void> {
    const newest = this.fold.newestUnpublished
    if (newest !== undefined && ulidTime(newest) >= this.#options.clock.now()) await this.publish()
  }

  /** Repeats one recorded publish exactly: its segments, its kind, its time and its file names. */
  async replay(recorded: OrderedPublish): Promise<void> {
    const { kind, epoch, published_at, retention, publish, history } = recorded
    // After a rebuild that began anew, numbers go on above those of the files that were there before.
    this.#manifest = { ...this.#manifest, publish: publish - 1 }
    const rules = { retention: retention ?? this.#rules.retention, history }
    const { finish } = await this.#draft(kind, epoch, toMs(published_at), rules)
    await this.#write(finish())
  }

  async #publish(kind: 'delta' | 'base' | undefined): Promise<'published' | 'nothing'> {
    this.#fence.check()
    this.#pending ??= await this.#prepare(kind)
    if (this.#pending === undefined) return 'nothing'
    await this.#options.ahead?.durable()
    await this.#writePending(this.#pending)
    return 'published'
  }

  async #writePending(pending: Pending): Promise<void> {
    pending.draft ??= pending.finish()
    await checkLeads(this.#options.lease)
    await this.#write(pending.draft)
    this.#pending = undefined
  }

  /** Works out the next publish; undefined when there is nothing to publish. */
  async #prepare(kind: 'delta' | 'base' | undefined): Promise<Pending | undefined> {
    const now = this.#options.clock.now()
    const chosen = kind ?? (isBaseDue(this.#manifest, this.#limits, this.state, this.fold.unpublished, now) ? 'base' : 'delta')
    const nothingNew = this.fold.unpublished === 0 && !this.state.hasChanges()
    if (nothingNew && (chosen === 'delta' || this.#manifest.l0.length === 0)) return undefined
    this.#manifest = await this.#fence.takeEpoch(this.#manifest, this.#options.name, now)
    const settling = await daysToSettle(this.#ledger, this.#days.due, (found) => this.fold.foldAll(found))
    // The draft copies memory before its first wait, in its turn; merging sorted files afterwards disturbs no fold.
    const drafting = await this.#turn.run(() => {
      this.#options.ahead?.closeSegment()
      // From here on no writer in this process makes names of days that this publish closes.
      this.#manifest = this.#days.move(this.#manifest, settling, now)
      return { draft: this.#draft(chosen, this.#manifest.epoch, now) }
    })
    return await drafting.draft
  }

  async #draft(
    kind: 'delta' | 'base',
    epoch: number,
    nowMs: number,
    rules: Pick<DraftInput, 'retention' | 'history'> = this.#rules,
  ): Promise<Pending> {
    const { store, scope, name, encoder = encoderHere } = this.#options
    const { closed_days = [], settled_days = [] } = this.#manifest
    const { segments: consumed, events } = this.fold.takeUnpublished()
    this.#drafted = consumed
    const input: DraftInput = {
      store,
      scope,
      state: this.state,
      manifest: { ...this.#manifest, l0_limits: this.#limits },
      epoch,
      compactor: name,
      publishedAt: toIso(nowMs),
      nowMs,
      events,
      newestEvent: this.fold.newest,
      days: { closed_days, settled_days },
      ...rules,
      inTransit: this.#cold.inTransit,
      sealing: this.#sealing,
      encoder,
    }
    try {
      const drafted = await (kind === 'delta' ? draftDelta(input) : draftBase(input))
      return { finish: () => drafted.finish(consumed) }
    } catch (error) {
      // Memory has given up rows that no file holds: only the ledger and the last manifest can be trusted now.
      const failed = this.#fence.break(
        new ServoError('unavailable', 'publish_failed', `a ${kind} could not be made: ${messageOf(error)}`, {
          hint: 'Open the state again.',
          cause: error,
        }),
      )
      throw (await this.#fence.explain(error, this.#manifest)) ?? failed
    }
  }

  async #write(draft: Draft): Promise<void> {
    await Promise.all(draft.files.map(({ path, bytes }) => this.#fence.createFile(path, bytes)))
    await this.#fence.createManifest(draft.manifest)
    await this.#turn.run(() => {
      this.#manifest = draft.manifest
      this.#drafted = []
      this.#cold.inTransit.clear()
      this.#sealing.clear()
    })
    this.#days.note(this.#manifest)
    await this.#keepMark()
    if (draft.manifest.l0.length === 0) this.fold.forgetSettled(draft.manifest)
  }
}
