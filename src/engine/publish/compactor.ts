import { isServoError, messageOf, ServoError } from '../../lib/error.ts'
import { Mutex } from '../../lib/mutex.ts'
import { toIso, toMs } from '../../lib/time.ts'
import type { Columns } from '../../model/column.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { Read, Registry, Verdict } from '../../model/event.ts'
import type { KeyPart } from '../../model/rows.ts'
import { parkedEvents } from '../../model/system-tables.ts'
import type { AnyRow, RowOf, Table } from '../../model/table.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { coldKey } from '../fold/added-rows.ts'
import { Folder } from '../fold/fold.ts'
import { provideRows } from '../fold/provide-rows.ts'
import { defaultRetention, MIN_IDEMPOTENCY_DAYS, type Retention } from '../fold/retention.ts'
import { mergeRows } from '../fold/row-merge.ts'
import type { State } from '../fold/state.ts'
import { type Consumed, namesOf, namesSoFar } from '../ledger/consumed.ts'
import { DayClosing } from '../ledger/day-closing.ts'
import { foldersOfDays, openDayFrom, pathsOf, unsettledPaths } from '../ledger/days.ts'
import { checkLeads, type Leading } from '../ledger/leading.ts'
import type { Made } from '../ledger/mint.ts'
import { decodeSegment, type Segment } from '../ledger/segment.ts'
import { type Encoder, encoderHere } from '../parquet/encoder.ts'
import { Paths, type Scope, segmentUlid } from '../paths.ts'
import { type ColdRowsToRead, coldRowsToRead } from '../sorted/cold-rows.ts'
import { RunReader } from '../sorted/sorted-file.ts'
import { isBaseDue } from './base-due.ts'
import { type Draft, type Drafted, draftBase, draftDelta, type RowsInTransit } from './draft.ts'
import { FoldedSegments } from './folded-segments.ts'
import { loadState } from './load-state.ts'
import { defaultL0Limits, type L0Limits, type Manifest, newestManifest, type OrderedPublish } from './manifest.ts'
import { claimNext, claimOf, createManifest, createOwn } from './manifest-create.ts'

export interface CompactorOptions {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly registry: Registry
  readonly clock: Pick<AlarmClock, 'now' | 'monotonic'>
  /** Names this process in manifests, for people. */
  readonly name: string
  readonly limits?: Partial<L0Limits>
  readonly retention?: Retention
  readonly ahead?: FoldAhead
  /** Held by a leader. It claims its epoch when it opens, and publishes nothing once somebody else leads. */
  readonly lease?: Leading
  /** Makes the bytes of large files; this process has one for all. */
  readonly encoder?: Encoder
}

/** Somebody folds events here before their segment is durable, to decide what belongs into the same segment. */
export interface FoldAhead {
  /** Called before anything else is folded or copied: what was folded ahead becomes a segment now, by `record`. */
  seal(): void
  /** Resolves when every segment that was recorded is durable. Nothing is published before. */
  durable(): Promise<void>
}

/** A publish that is worked out and not yet known to be written. */
interface Pending {
  readonly drafted: Drafted
  readonly consumed: readonly Consumed[]
  draft?: Draft
}

/** A segment that cannot be read: it is left where it is, unfolded, and reported until somebody repairs it. */
export interface Problem {
  readonly path: string
  readonly message: string
}

/** Segments read ahead of the fold: enough to hide the store's latency, few enough to stay small. */
const READ_AHEAD = 16

/**
 * Folds the ledger into tables and publishes them; the only writer of state. Any number may run: each claims a higher
 * epoch before it writes, and one that was overtaken finds the next manifest taken, throws `fenced` and is of no use
 * any more. Open a new one then.
 */
export class Compactor {
  readonly state: State
  readonly #options: CompactorOptions
  readonly #paths: Paths
  readonly #folder: Folder
  readonly #folded: FoldedSegments
  readonly #reader: RunReader
  readonly #limits: L0Limits
  readonly #retention: Retention
  #manifest: Manifest
  #claimed = false
  #consumed: { segments: Consumed[]; events: number } = { segments: [], events: 0 }
  /** Segments folded here so far; a publish begins `#consumed` anew, perhaps while somebody counts. */
  #applied = 0
  readonly #days: DayClosing
  /** Tried again before anything else is published. */
  #pending: Pending | undefined
  readonly #inTransit: RowsInTransit = new Map()
  #claiming: Manifest | undefined
  #publishing: Promise<'published' | 'nothing'> | undefined
  /** Between fetching cold rows and folding with them, no publish may move rows from memory to files. */
  readonly #turn = new Mutex()
  #broken: ServoError | undefined
  readonly problems = new Map<string, Problem>()

  private constructor(options: CompactorOptions, manifest: Manifest, state: State, days: readonly string[]) {
    this.#options = options
    this.#paths = new Paths(options.scope)
    this.#manifest = manifest
    this.#days = new DayClosing(days)
    this.#days.note(manifest)
    this.state = state
    this.#folder = new Folder(options.registry, state)
    this.#folded = new FoldedSegments(options.store, manifest)
    this.#reader = new RunReader(options.store)
    this.#limits = { ...defaultL0Limits, ...options.limits }
    this.#retention = { ...defaultRetention, ...options.retention }
    if ((this.#retention['idempotency_keys'] ?? 0) < MIN_IDEMPOTENCY_DAYS) {
      throw new ServoError(
        'invalid',
        'retention_too_short',
        `idempotency keys must be kept for at least ${MIN_IDEMPOTENCY_DAYS} days`,
        { hint: 'Queues repeat messages for that long.' },
      )
    }
  }

  static async open(options: CompactorOptions): Promise<Compactor> {
    const { store, scope } = options
    const paths = new Paths(scope)
    const [newest, days] = await Promise.all([newestManifest(store, paths, scope), foldersOfDays(store, paths)])
    const { lease } = options
    const manifest = lease === undefined ? newest : await claimNext(options, paths, newest, options.clock.now())
    // An earlier version did not note when it folded what: anything may have been in the first publish.
    const first_publishes = manifest.first_publishes ?? Object.fromEntries(days.map((day) => [day, 0]))
    const compactor = await Compactor.at(options, { ...manifest, first_publishes }, days)
    compactor.#claimed = lease !== undefined
    return compactor
  }

  /** Opens the state of one manifest. */
  static async at(options: CompactorOptions, manifest: Manifest, days: readonly string[] = []): Promise<Compactor> {
    const compactor = new Compactor(options, manifest, await loadState(options.store, options.registry, manifest), days)
    // What an earlier version did not understand is rare; looking for what it reads costs a cold start three more rounds.
    const isUnknown = (parked: AnyRow): boolean => parked['reason'] !== 'waiting'
    if ([...compactor.state.hotTable(parkedEvents).all()].some(isUnknown)) {
      await compactor.#fetch(compactor.#folder.reads([]))
      compactor.#folder.retryUnknown()
    }
    return compactor
  }

  get manifest(): Manifest {
    return this.#manifest
  }

  /** Segments folded here and not published yet. */
  get unpublished(): number {
    return this.#consumed.segments.length
  }

  /**
   * Folds segments in the order given: those whose durable write is known, e.g. from this process's own ledger or a
   * notification. Segments that were folded before are passed over. Returns the verdict on each event by its id.
   */
  async apply(segments: readonly Segment[]): Promise<Map<string, Verdict>> {
    return await this.#turn.run(() => this.#apply(segments))
  }

  async #apply(segments: readonly Segment[]): Promise<Map<string, Verdict>> {
    this.#check()
    const verdicts = new Map<string, Verdict>()
    const fresh = new Set(await this.#folded.fresh(segments.map((segment) => segment.ulid)))
    const batch = segments.filter((segment) => fresh.delete(segment.ulid))
    await this.#fetch(this.#folder.reads(batch.flatMap((segment) => segment.events)))
    if (batch.length > 0) this.#options.ahead?.seal()
    for (const segment of batch) {
      for (const event of segment.events) verdicts.set(event.event_id, this.#fold(event))
      this.#folded.add(segment.ulid)
      this.#days.add(segment.ulid)
      this.record({ ulid: segment.ulid }, segment.events.length)
      this.#applied += 1
    }
    return verdicts
  }

  /**
   * Folds events that have no segment yet. `also` may add to them by what they changed, in the same turn, so that nothing
   * comes between; whoever calls this hands in their segment by `record` when it is complete, and publishing waits for it.
   */
  async foldAhead(made: readonly Made[], also: (verdicts: Map<string, Verdict>) => readonly Made[]): Promise<void> {
    await this.#turn.run(async () => {
      this.#check()
      for (let next = made; ; ) {
        for (const { event, definition } of next) this.#folder.trust(event, definition)
        const reads = this.#folder.reads(next.map(({ event }) => event))
        if (reads.length > 0) await this.#fetch(reads)
        const verdicts = new Map<string, Verdict>()
        for (const { event } of next) verdicts.set(event.event_id, this.#fold(event))
        this.#folder.forgetTrusted()
        next = also(verdicts)
        if (next.length === 0) return
      }
    })
  }

  /** What was folded since the last segment is this segment, and has its place in the order from now on. */
  record(consumed: Consumed, events: number): void {
    this.#consumed.segments.push(consumed)
    this.#consumed.events += events
  }

  /** A segment that is about to be written gets its name, or another one. Whoever lists the ledger from now on finds it folded. */
  name(consumed: Consumed, ulid: string): void {
    // What may still turn up under the name before is a segment like any other: folded again, it changes nothing.
    if (consumed.ulid !== undefined) this.#folded.remove(consumed.ulid)
    consumed.ulid = ulid
    this.#folded.add(ulid)
    this.#days.add(ulid)
  }

  /** Whether a segment was folded here, or is being written by this process. */
  isFolded(ulid: string): boolean {
    return this.#folded.has(ulid)
  }

  /** The first day from this one on in which segments may be written. */
  openFrom(day: string): string {
    return openDayFrom(this.#manifest, day)
  }

  /** A cold row by its key, with what is not published yet. */
  async lookup<C extends Columns>(table: Table<C>, ...key: KeyPart[]): Promise<RowOf<C> | undefined> {
    const [row] = await this.lookupAll(table, [key])
    return row
  }

  /** The same for many keys, each row in the place of its key. */
  async lookupAll<C extends Columns>(table: Table<C>, keys: readonly KeyPart[][]): Promise<(RowOf<C> | undefined)[]> {
    return (await this.coldRows(table as unknown as Table).lookup(keys)) as (RowOf<C> | undefined)[]
  }

  /** A cold table for whoever goes through many of its rows. */
  coldRows(table: Table): ColdRowsToRead {
    return coldRowsToRead(table, {
      runs: this.#manifest.runs[table.name] ?? [],
      inTransit: this.#inTransit.get(table),
      memory: this.state.coldTable(table),
      reader: this.#reader,
      stored: (keys) => this.#stored(table, keys),
    })
  }

  #fold(event: Envelope): Verdict {
    try {
      return this.#folder.fold(event)
    } catch (error) {
      // Half a segment is in memory now. Publishing it would give tables that no replay of the ledger makes.
      const message = `${event.event_type} ${event.event_id} could not be folded: ${messageOf(error)}`
      throw this.#break(
        new ServoError('bug', 'fold_failed', message, {
          hint: 'Nothing is lost; upgrade Servo and open the state again.',
          cause: error,
        }),
      )
    }
  }

  /** Folds segments that somebody announced by path. */
  async applyPaths(paths: readonly string[]): Promise<void> {
    const fresh = await this.#folded.fresh(ulidsOf(paths))
    for (let start = 0; start < fresh.length; start += READ_AHEAD) {
      const segments = await Promise.all(fresh.slice(start, start + READ_AHEAD).map((ulid) => this.#read(ulid)))
      await this.apply(segments.filter((segment) => segment !== undefined))
    }
  }

  /** Looks for segments that nobody announced. Returns how many were folded. */
  async catchUp(options: { settledToo?: boolean; maxSegments?: number } = {}): Promise<number> {
    this.#check()
    const before = this.#applied
    const looked = options.settledToo ? { ...this.#manifest, settled_days: [] } : this.#manifest
    let found: string[] = []
    for await (const path of unsettledPaths(this.#options.store, this.#paths, looked, this.#days.known)) {
      found.push(path)
      if (found.length >= 1_000) {
        await this.applyPaths(found)
        found = []
        if (this.#applied - before >= (options.maxSegments ?? Number.POSITIVE_INFINITY)) break
      }
    }
    await this.applyPaths(found)
    return this.#applied - before
  }

  /** Writes what changed. One publish at a time, later calls wait their turn; folds may go on meanwhile. */
  async publish(options: { kind?: 'delta' | 'base' } = {}): Promise<'published' | 'nothing'> {
    while (this.#publishing !== undefined) await this.#publishing.catch(() => undefined)
    this.#publishing = this.#publish(options.kind)
    try {
      return await this.#publishing
    } finally {
      this.#publishing = undefined
    }
  }

  /** Repeats one recorded publish exactly: its segments, its kind, its time and its file names. */
  async replay(recorded: OrderedPublish): Promise<void> {
    const { kind, epoch, published_at, retention, publish } = recorded
    // After a rebuild that began anew, numbers go on above those of the files that were there before.
    this.#manifest = { ...this.#manifest, publish: publish - 1 }
    const { drafted, consumed } = await this.#draft(kind, epoch, toMs(published_at), retention)
    await this.#write(drafted.finish(namesOf(consumed)))
  }

  async #publish(kind: 'delta' | 'base' | undefined): Promise<'published' | 'nothing'> {
    this.#check()
    if (this.#pending === undefined) {
      const now = this.#options.clock.now()
      const chosen = kind ?? (this.#isBaseDue(now) ? 'base' : 'delta')
      const nothingNew = this.#consumed.segments.length === 0 && !this.state.hasChanges()
      if (nothingNew && (chosen === 'delta' || this.#manifest.l0.length === 0)) return 'nothing'
      await this.#claim(now)
      const settling = await this.#daysToSettle()
      // The draft copies memory before its first wait, in its turn; merging runs afterwards disturbs no fold.
      const drafting = await this.#turn.run(() => {
        this.#options.ahead?.seal()
        // From here on nobody in this process makes names of days that this publish closes.
        this.#manifest = this.#days.move(this.#manifest, settling, now)
        return { draft: this.#draft(chosen, this.#manifest.epoch, now) }
      })
      this.#pending = await drafting.draft
    }
    await this.#options.ahead?.durable()
    const { drafted, consumed } = this.#pending
    this.#pending.draft ??= drafted.finish(namesOf(consumed))
    await checkLeads(this.#options.lease)
    await this.#write(this.#pending.draft)
    this.#pending = undefined
    return 'published'
  }

  async #draft(kind: 'delta' | 'base', epoch: number, nowMs: number, retention = this.#retention): Promise<Pending> {
    const { store, scope, name } = this.#options
    const { segments: consumed, events } = this.#consumed
    const input = {
      store,
      scope,
      state: this.state,
      manifest: { ...this.#manifest, l0_limits: this.#limits },
      epoch,
      compactor: name,
      publishedAt: toIso(nowMs),
      nowMs,
      events,
      days: { closed_days: this.#manifest.closed_days ?? [], settled_days: this.#manifest.settled_days ?? [] },
      retention,
      inTransit: this.#inTransit,
      encoder: this.#options.encoder ?? encoderHere,
    }
    this.#consumed = { segments: [], events: 0 }
    try {
      return { drafted: await (kind === 'delta' ? draftDelta(input) : draftBase(input)), consumed }
    } catch (error) {
      // Memory has given up rows that no file holds: only the ledger and the last manifest are to be trusted now.
      const failed = this.#break(
        new ServoError('unavailable', 'publish_failed', `a ${kind} could not be made: ${messageOf(error)}`, {
          hint: 'Open the state again.',
          cause: error,
        }),
      )
      throw (await this.#isOvertaken(error))
        ? this.#fenced('another compactor has taken over, and the files of this one were collected', error)
        : failed
    }
  }

  async #write(draft: Draft): Promise<void> {
    await Promise.all(draft.files.map(({ path, bytes }) => this.#createFile(path, bytes)))
    await this.#createManifest(draft.manifest)
    await this.#turn.run(() => {
      this.#manifest = draft.manifest
      this.#inTransit.clear()
    })
    this.#days.note(this.#manifest)
    if (draft.manifest.l0.length === 0) this.#folded.forgetSettled(draft.manifest, namesSoFar(this.#consumed.segments))
  }

  /**
   * Days that nobody writes to any more, and of which everything is folded. They are looked at once more for that. A day with a
   * segment that cannot be read waits until somebody repairs it.
   */
  async #daysToSettle(): Promise<string[]> {
    const { store } = this.#options
    const { due } = this.#days
    if (due.length === 0) return []
    const folders = new Set(await foldersOfDays(store, this.#paths))
    const settled: string[] = []
    for (const day of due) {
      const found = folders.has(day) ? await pathsOf(store, this.#paths, day) : []
      await this.applyPaths(found)
      if (await this.#folded.haveAll(ulidsOf(found))) settled.push(day)
    }
    return settled
  }

  #isBaseDue(nowMs: number): boolean {
    return isBaseDue(this.#manifest, this.#limits, this.state, this.#consumed.segments.length, nowMs)
  }

  /** Makes it known that this process writes from now on. */
  async #claim(nowMs: number): Promise<void> {
    if (this.#claimed) return
    // Kept as it is for a second try, or we would take our own first one for another's.
    this.#claiming ??= claimOf(this.#manifest, this.#options.name, nowMs)
    await this.#createManifest(this.#claiming)
    this.#manifest = this.#claiming
    this.#claimed = true
  }

  async #createManifest(manifest: Manifest): Promise<void> {
    const outcome = await createManifest(this.#options.store, this.#paths, manifest)
    if (outcome === 'taken') throw this.#fenced(`another compactor has published manifest ${manifest.number}`)
    if (outcome === 'passed') throw this.#fenced(`manifest ${manifest.number} is older than what is kept`)
  }

  async #createFile(path: string, bytes: Uint8Array): Promise<void> {
    if (await createOwn(this.#options.store, path, bytes)) return
    throw this.#break(
      new ServoError('corrupt', 'file_taken', `${path} exists with other contents`, {
        hint: 'Two compactors share an epoch; run `servo verify`.',
        facts: { path },
      }),
    )
  }

  /** Fetches the cold rows that folds will look up, so that the fold itself does no IO. */
  async #fetch(reads: readonly Read[]): Promise<void> {
    await provideRows(this.state, reads, async (table, keys) => {
      const rows = await this.#stored(table, keys)
      const inTransit = this.#inTransit.get(table)
      return rows.map((stored, i) => {
        const moving = inTransit?.get(coldKey(keys[i] as KeyPart[]))
        return stored && moving ? mergeRows(table, stored, moving) : (stored ?? moving)
      })
    })
  }

  async #stored(table: Table, keys: readonly KeyPart[][]): Promise<(AnyRow | undefined)[]> {
    try {
      return await this.#reader.lookupMerged(table, this.#manifest.runs[table.name] ?? [], keys)
    } catch (error) {
      if (await this.#isOvertaken(error))
        throw this.#fenced('another compactor has taken over, and the files of this one were collected', error)
      throw error
    }
  }

  /** Whether a file is gone because a newer manifest does not name it, and not because the state is damaged. */
  async #isOvertaken(error: unknown): Promise<boolean> {
    if (!isServoError(error, 'corrupt') || error.code !== 'file_missing') return false
    const { store, scope } = this.#options
    const newest = await newestManifest(store, this.#paths, scope).catch(() => undefined)
    return newest !== undefined && newest.number > this.#manifest.number
  }

  async #read(ulid: string): Promise<Segment | undefined> {
    const { store, scope } = this.#options
    const path = this.#paths.segment(ulid)
    try {
      const bytes = await store.get(path)
      if (bytes === undefined) return undefined
      const events: Envelope[] = decodeSegment(bytes, path, scope)
      this.problems.delete(path)
      return { ulid, events }
    } catch (error) {
      if (!isServoError(error, 'corrupt')) throw error
      // One damaged segment must not stop the others: it stays unfolded, and is folded like any late one once repaired.
      this.problems.set(path, { path, message: error.message })
      return undefined
    }
  }

  #fenced(message: string, cause?: unknown): ServoError {
    return this.#break(
      new ServoError('conflict', 'fenced', message, { hint: 'Open the state again; this one is out of date.', cause }),
    )
  }

  #break(error: ServoError): ServoError {
    this.#broken = error
    return error
  }

  #check(): void {
    if (this.#broken !== undefined) throw this.#broken
  }
}

const ulidsOf = (paths: readonly string[]): string[] => paths.flatMap((path) => segmentUlid(path) ?? [])
