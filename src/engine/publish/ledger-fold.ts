import { messageOf, ServoError } from '../../lib/error.ts'
import type { Mutex } from '../../lib/mutex.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { NewEvent, Registry, Verdict } from '../../model/event.ts'
import { parkedEvents } from '../../model/system-tables.ts'
import { EventFold } from '../fold/event-fold.ts'
import type { State } from '../fold/state.ts'
import { Archives } from '../ledger/archives.ts'
import { type Consumed, segmentNamesSoFar } from '../ledger/consumed.ts'
import type { DayClosing } from '../ledger/day-closing.ts'
import { unsettledAndPacked, unsettledPaths } from '../ledger/days.ts'
import type { CheckedEvent } from '../ledger/mint.ts'
import { missingSegments } from '../ledger/missing-segments.ts'
import { type Damage, type LedgerPlace, readUndamaged } from '../ledger/read-segment.ts'
import type { Segment } from '../ledger/segment.ts'
import { SeenSegments, type Sequence } from '../ledger/sequence.ts'
import { type LastSegments, type Manifest, type NewestEvent, newestEventIn } from '../manifest/manifest.ts'
import { segmentUlid } from '../paths.ts'
import type { ColdStore } from '../sorted/cold-store.ts'
import type { Fence } from './fence.ts'
import { FoldedSegments } from './folded-segments.ts'

/** Segments read ahead of the fold: enough to hide the store's latency, few enough to stay small. */
const READ_AHEAD = 16
/** Paths that are looked at together: a ledger that was never published may have millions. */
const PATHS_TOGETHER = 1_000

/** The events and segments folded since the last publish. */
export interface Unpublished {
  readonly segments: Consumed[]
  events: number
}

/** A loop that folds events here before their segment is durable, to decide what goes into the same segment. */
export interface FoldAhead {
  /** Called before anything else is folded or copied: the loop closes its open segment, and records it in the fold. */
  closeSegment(): void
  /** Resolves when every segment that was recorded is durable. Nothing is published before. */
  durable(): Promise<void>
}

export interface LedgerFoldParts {
  readonly ledger: LedgerPlace
  readonly registry: Registry
  readonly state: State
  readonly cold: ColdStore
  readonly days: DayClosing
  readonly fence: Fence
  /** Between fetching cold rows and folding with them, no publish may move rows from memory to files. */
  readonly turn: Mutex
  /** Called before a segment of another process is folded: the loop closes the segment of what it has folded ahead. */
  readonly beforeOthers: () => void
}

/** Folds segments of the ledger into memory, each once, and knows which were folded since the last publish. */
export class LedgerFold {
  /** Segments that cannot be read, by path: they stay unfolded, and are reported until they are repaired. */
  readonly damaged = new Map<string, Damage>()
  readonly #parts: LedgerFoldParts
  readonly #eventFold: EventFold
  readonly #folded: FoldedSegments
  #unpublished: Unpublished = { segments: [], events: 0 }
  /** How many segments of other processes were folded. `#unpublished` cannot count them: a publish may empty it while a caller counts. */
  #applied = 0
  /** True once what was packed of unsettled days is folded: nobody but this process packs anything later on. */
  #hasLooked = false
  /** Segments that are deleted because they are packed. Their folders are watched, and a file that goes looks like one that comes. */
  #leaving: ReadonlySet<string> = new Set()
  readonly #refused = new Set<string>()
  /** The segments folded since the last manifest, until they were searched for gaps. */
  #arrived: SeenSegments | undefined = new SeenSegments()
  /** The event that stands last in order, of all that were ever folded. */
  newest: NewestEvent | undefined
  /** Called with the events of each segment of another process, in its place among those that were recorded. */
  onApplied: ((events: readonly Envelope[]) => void) | undefined

  constructor(parts: LedgerFoldParts, manifest: Manifest) {
    this.#parts = parts
    this.#eventFold = new EventFold(parts.registry, parts.state)
    this.#folded = new FoldedSegments(parts.ledger.store, manifest)
    this.newest = newestEventIn(manifest)
  }

  /** Segments folded and not published yet. */
  get unpublished(): number {
    return this.#unpublished.segments.length
  }

  get unpublishedEvents(): number {
    return this.#unpublished.events
  }

  /** The largest name among them; undefined if there is none. */
  get newestUnpublished(): string | undefined {
    return segmentNamesSoFar(this.#unpublished.segments).sort().at(-1)
  }

  /** The segments among them. */
  get unpublishedSegments(): readonly Consumed[] {
    return this.#unpublished.segments
  }

  /** Hands over the events folded since the last call. */
  takeUnpublished(): Unpublished {
    const taken = this.#unpublished
    this.#unpublished = { segments: [], events: 0 }
    return taken
  }

  /** True if a segment was folded here, or is being written or deleted by this process. */
  has(ulid: string): boolean {
    return this.#folded.has(ulid) || this.#leaving.has(ulid)
  }

  /** These segments are folded and packed, and are deleted from now on. */
  leave(ulids: readonly string[]): void {
    this.#leaving = new Set(ulids)
  }

  /** These segments belong to another ledger: nothing folds them here. */
  refuse(ulids: Iterable<string>): void {
    for (const ulid of ulids) this.#refused.add(ulid)
  }

  /** A base is published: what lies in settled days can be read again from its recorded order. */
  forgetSettled(manifest: Manifest): void {
    this.#folded.forgetSettled(manifest, segmentNamesSoFar(this.#unpublished.segments))
  }

  /**
   * What is damaged or missing of the ledger beyond the published segments `since`, up to the last ones that are `named`. Asked once,
   * when what the ledger holds is folded: later on, a listing that runs beside a writer may miss a segment and find the one after it.
   */
  takeDamage(since: LastSegments, named: LastSegments): Damage[] {
    const gaps = this.#arrived?.gaps(since, named) ?? []
    this.#arrived = undefined
    const damaged = [...this.damaged.keys()].flatMap((path) => segmentUlid(path) ?? [])
    return [...this.damaged.values(), ...missingSegments(this.#parts.ledger.paths, gaps, damaged)]
  }

  /** Tries again what an earlier version of Servo did not understand. */
  async retryUnknown(): Promise<void> {
    const { state, cold } = this.#parts
    // There is rarely one, and fetching what it reads costs a cold start three more round trips.
    for (const { reason } of state.hot(parkedEvents).all()) {
      if (reason === 'waiting') continue
      await cold.provide(state, this.#eventFold.reads([]))
      this.#eventFold.retryUnknown()
      return
    }
  }

  /** Folds segments in the order given, except segments that were folded before. Returns the verdict on each event by its id. */
  async apply(segments: readonly Segment[]): Promise<Map<string, Verdict>> {
    return await this.#parts.turn.run(() => this.#apply(segments))
  }

  async #apply(segments: readonly Segment[]): Promise<Map<string, Verdict>> {
    const { state, cold, days, fence, beforeOthers } = this.#parts
    fence.check()
    const verdicts = new Map<string, Verdict>()
    const fresh = new Set(await this.#folded.fresh(segments.map((segment) => segment.ulid)))
    const batch = segments.filter((segment) => fresh.delete(segment.ulid))
    await cold.provide(state, this.#eventFold.reads(batch.flatMap((segment) => segment.events)))
    if (batch.length > 0) beforeOthers()
    for (const segment of batch) {
      for (const event of segment.events) verdicts.set(event.event_id, this.#fold(event))
      this.#folded.add(segment.ulid)
      days.add(segment.ulid)
      this.record({ ulid: segment.ulid, sequence: segment.sequence, isDurable: true }, segment.events.length)
      this.onApplied?.(segment.events)
      this.#arrived?.add(segment)
      this.#applied += 1
    }
    return verdicts
  }

  /**
   * Folds events that have no segment yet. `also` is given their verdicts, and the events, and may return more, which are folded in the same turn,
   * so that nothing comes between. The caller hands in the segment with `record` when it is complete, and publishing waits for it.
   */
  async foldAhead(
    events: readonly CheckedEvent[],
    also: (verdicts: Map<string, Verdict>, folded: readonly CheckedEvent[]) => readonly CheckedEvent[],
  ): Promise<void> {
    const { state, cold, fence, turn } = this.#parts
    await turn.run(async () => {
      fence.check()
      for (let next = events; ; ) {
        for (const { event, definition } of next) this.#eventFold.trust(event, definition)
        const reads = this.#eventFold.reads(next.map(({ event }) => event))
        if (reads.length > 0) await cold.provide(state, reads)
        const verdicts = new Map<string, Verdict>()
        for (const { event } of next) verdicts.set(event.event_id, this.#fold(event))
        this.#eventFold.forgetTrusted()
        next = also(verdicts, next)
        if (next.length === 0) return
      }
    })
  }

  /** Fetches cold rows of events that will probably be folded soon. If it fails, fetching them then says why. */
  async lookAhead(events: readonly NewEvent[]): Promise<void> {
    try {
      await this.#parts.cold.lookAhead(events.flatMap(({ definition, payload }) => definition.reads?.(payload) ?? []))
    } catch {
      // Nothing depends on it.
    }
  }

  /** The events folded since the last segment become this segment, which gets its place in the order. */
  record(consumed: Consumed, events: number): void {
    this.#unpublished.segments.push(consumed)
    this.#unpublished.events += events
  }

  /** A segment that is about to be written gets its name, or another one. A listing of the ledger from now on finds it folded. */
  name(consumed: Consumed, ulid: string, sequence: Sequence): void {
    // A segment that still turns up under the earlier name is folded like any other, and changes nothing.
    if (consumed.ulid !== undefined) this.#folded.remove(consumed.ulid)
    consumed.ulid = ulid
    consumed.sequence = sequence
    this.#folded.add(ulid)
    this.#parts.days.add(ulid)
  }

  /** Folds the segments among these paths. */
  async applyPaths(paths: readonly string[]): Promise<void> {
    const fresh = await this.#folded.fresh(ulidsOf(paths).filter((ulid) => !this.#refused.has(ulid)))
    for (let start = 0; start < fresh.length; start += READ_AHEAD) {
      const segments = await Promise.all(fresh.slice(start, start + READ_AHEAD).map((ulid) => this.#read(ulid)))
      await this.apply(segments.filter((segment) => segment !== undefined))
    }
  }

  /** Looks for segments outside of the days that this manifest has settled. Returns how many were folded. */
  async catchUp(manifest: Manifest, maxSegments = Number.POSITIVE_INFINITY): Promise<number> {
    const { ledger, days, fence } = this.#parts
    fence.check()
    const before = this.#applied
    let together: string[] = []
    const { store, paths, archives = new Archives(ledger) } = ledger
    const { known } = days
    const found = this.#hasLooked
      ? unsettledPaths(store, paths, manifest, known)
      : unsettledAndPacked(store, paths, manifest, { known, archives })
    for await (const path of found) {
      together.push(path)
      if (together.length >= PATHS_TOGETHER) {
        await this.applyPaths(together)
        together = []
        if (this.#applied - before >= maxSegments) return this.#applied - before
      }
    }
    await this.applyPaths(together)
    this.#hasLooked = true
    return this.#applied - before
  }

  /** Folds the segments among these paths; true if there is none left that is not folded. */
  async foldAll(paths: readonly string[]): Promise<boolean> {
    await this.applyPaths(paths)
    return await this.#folded.haveAll(ulidsOf(paths))
  }

  #fold(event: Envelope): Verdict {
    if (this.newest === undefined || event.event_id > this.newest.event_id) this.newest = event
    try {
      return this.#eventFold.fold(event)
    } catch (error) {
      // Half a segment is in memory now. Publishing it would give tables that no replay of the ledger makes.
      const message = `${event.event_type} ${event.event_id} could not be folded: ${messageOf(error)}`
      throw this.#parts.fence.break(
        new ServoError('bug', 'fold_failed', message, {
          hint: 'Nothing is lost; upgrade Servo and open the state again.',
          cause: error,
        }),
      )
    }
  }

  async #read(ulid: string): Promise<Segment | undefined> {
    const { ledger } = this.#parts
    const segment = await readUndamaged(ledger, ulid, (damage) => this.damaged.set(damage.path, damage))
    if (segment !== undefined) this.damaged.delete(ledger.paths.segment(ulid))
    return segment
  }
}

const ulidsOf = (paths: readonly string[]): string[] => paths.flatMap((path) => segmentUlid(path) ?? [])
