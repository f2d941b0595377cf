import { assert } from '../../lib/assert.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import { transition } from '../../lib/transitions.ts'
import type { NewEvent, Verdict } from '../../model/event.ts'
import type { Table } from '../../model/table.ts'
import { ClockSteps } from '../../ports/clock-steps.ts'
import { EventClock } from '../ledger/event-clock.ts'
import { checkLeads } from '../ledger/leading.ts'
import { type CheckedEvent, type Minted, mintEvents, prepareEvents, sizeLimits } from '../ledger/mint.ts'
import { SegmentWriter } from '../ledger/segment-writer.ts'
import { Paths } from '../paths.ts'
import { Compactor } from '../publish/compactor.ts'
import { AwaitedSegment } from './awaited-segment.ts'
import { Controllers } from './controllers.ts'
import { FoldedEvents } from './folded-events.ts'
import { Inbox, isAnsweredFirst, type Submission, type Submitted, verdictsOn } from './inbox.ts'
import type { LoopOptions } from './loop-options.ts'
import { type LoopState, loopTransitions } from './loop-states.ts'
import { Reactions } from './reactions.ts'
import { SegmentFeed } from './segment-feed.ts'
import { type ClosedSegment, SegmentQueue } from './segment-queue.ts'
import { WakeUp } from './wake-up.ts'

export type { Submitted } from './inbox.ts'
export type { Reactor } from './reactions.ts'

/** Submissions that are folded together while a segment is written: enough to share the work, few enough to keep the fold busy. */
const FOLD_TOGETHER = 4
/** So many decisions are made durable before the loop asks what follows from them: a thousand ticks do not wait for a thousand plans. */
const MANY_DECISIONS = 500
/** Controllers that still answer each other after this many rounds would never stop. */
const MAX_ROUNDS = 10_000

/**
 * Facts in, decisions out, one durable write for both. A fact is folded as soon as it is submitted; the controllers see what
 * it changed and add what follows to the same segment; only when that segment is durable does the loop answer a caller or act.
 * While one segment is written the next one fills, so a busy loop writes fewer, larger segments by itself.
 *
 * Its states:
 * - `open`: facts are taken, folded, written and answered.
 * - `closing`: no more facts are let in, and what was let in is written and answered; then `closed`.
 * - `broken`: memory is ahead of the ledger by the segments in flight, and one of them could not be written, or this process
 *   leads no longer. Memory cannot be trusted then: every waiting caller gets the error, the loop writes and does nothing more, and
 *   its owner opens another loop from what is durable.
 */
export class Loop {
  readonly compactor: Compactor
  readonly #options: LoopOptions & { readonly eventClock: EventClock }
  readonly #controllers: Controllers
  readonly #reactions: Reactions
  readonly #foldedEvents: FoldedEvents
  readonly #watched: readonly Table[]
  readonly #inbox = new Inbox()
  readonly #segments: SegmentQueue
  readonly #writer: SegmentWriter<ClosedSegment>
  #state: LoopState = 'open'
  /** The error for callers that come after the loop has stopped taking facts. */
  #ending: unknown
  /** True if the controllers must be asked although nothing was submitted. */
  #nudged = false
  readonly #awaited = new AwaitedSegment(() => this.nudge())
  /** Set while something is being folded. */
  #folding: Promise<void> | undefined
  readonly #wakeUp: WakeUp
  readonly #steps: ClockSteps
  #feed!: SegmentFeed
  readonly durableSegments = (): number => this.#segments.durable

  private constructor(options: LoopOptions, compactor: Compactor) {
    this.#options = { ...options, eventClock: new EventClock(options) }
    this.#steps = new ClockSteps(options.clock)
    this.#wakeUp = new WakeUp({ clock: options.clock, prepare: (at) => this.#prepareFor(at), ring: () => this.nudge() })
    this.compactor = compactor
    this.#controllers = new Controllers(options.controllers)
    this.#reactions = new Reactions(options.reactors ?? [])
    this.#foldedEvents = new FoldedEvents(options.onRecorded, () => options.clock.now())
    this.#watched = [...new Set([...this.#controllers.tables, ...this.#reactions.tables])]
    for (const table of this.#watched) compactor.state.hotTable(table).watch()
    this.#segments = new SegmentQueue((segment) => {
      compactor.fold.record(segment.consumed, segment.texts.length)
      this.#writer.wake()
    })
    const { store, clock, ulid, scope } = options
    this.#writer = new SegmentWriter(
      { store, clock, ulid, paths: new Paths(scope), days: compactor },
      {
        prepare: () => this.#prepare(),
        take: () => this.#next(),
        named: (segment, name, sequence) => compactor.fold.name(segment.consumed, name, sequence),
        written: (segment, name) => {
          this.#feed.announce(name)
          this.#answer(segment)
        },
        failed: (_, error) => this.#break(error),
      },
    )
  }

  /** Opens the newest state and folds what the ledger holds beyond it. Nothing is decided before the first sweep. */
  static async open(options: LoopOptions): Promise<Loop> {
    const self: { loop?: Loop } = {}
    const ahead = { closeSegment: () => self.loop?.closeSegment(), durable: async () => self.loop?.durable() }
    const compactor = await Compactor.open({ ...options, ahead })
    const loop = new Loop(options, compactor)
    loop.#feed = await SegmentFeed.open({
      ...options,
      compactor,
      onCaughtUp: (foundSome) => self.loop?.caughtUp(foundSome),
      onTrouble: (error) => loop.#troubled(error),
    })
    for (const damage of compactor.takeDamage()) options.onFound?.(damage)
    await compactor.keepOrder()
    self.loop = loop
    // An error while it was opened may have broken the loop already; the caller must not get a broken one.
    if (loop.#isOver) throw loop.#ending
    return loop
  }

  /**
   * Shows every row to the controllers and the reactors as if it had just changed. A loop begins with a sweep; a later one finds work
   * that a lost alarm or a crash left behind. Sweeps are safe to repeat, because controllers and reactors do nothing twice.
   */
  sweep(): void {
    const { state } = this.compactor
    // Reactors are shown the rows only once the open segment is durable: some were changed by segments that are not durable yet.
    const { changed } = this.#segments
    for (const table of this.#reactions.tables) this.#reactions.remember(changed, table, new Set(state.hotTable(table).all()))
    this.#controllers.observeAll((table) => state.hotTable(table).all())
    this.nudge()
  }

  /** Writes facts, with everything that follows from them. Resolves with the verdict on each fact once they are durable. */
  async submit(events: readonly NewEvent[]): Promise<Submitted> {
    if (this.#state !== 'open') throw this.#ending
    const minted = this.#mint(events)
    return await this.#inbox.add(minted, () => {
      // While a segment is written, folding one fact at a time gains nothing; folding a few together costs half as much.
      if (this.#shouldFold()) this.#folding ??= this.#fold()
    })
  }

  #mint(events: readonly NewEvent[]): Minted {
    // Others may have written meanwhile, by clocks that are ahead of this one.
    this.#options.eventClock.follow(this.compactor.fold.newest)
    return mintEvents(this.#options, sizeLimits, events)
  }

  /** Asks the controllers again: time has passed, or facts of other processes were folded. */
  nudge(): void {
    if (this.#isOver) return
    this.#nudged = true
    this.#folding ??= this.#fold()
  }

  /** The segments of other processes, if there were any, are folded: asks the controllers, and marks the tables as behind. */
  caughtUp(foundSome: boolean): void {
    this.nudge()
    if (this.compactor.fold.unpublished > 0) this.#options.onDurable?.(!foundSome)
  }

  /** Folds what other processes have written. */
  async catchUp(): Promise<number> {
    const folded = await this.compactor.catchUp()
    if (folded > 0) this.nudge()
    return folded
  }

  /** Resolves when everything that was submitted is durable and nothing more follows from it for now. */
  async idle(): Promise<void> {
    while (this.#folding !== undefined || this.#awaited.answering !== undefined || this.#writer.isBusy) {
      await this.#awaited.answering
      await this.#folding
      await this.#writer.idle()
    }
  }

  /** Stops deciding and waits for what is being written. */
  async close(): Promise<void> {
    if (this.#state === 'open') {
      this.#ending = new ServoError('unavailable', 'closed', 'this process is shutting down', { hint: 'Try again.' })
      this.#enter('closing')
    }
    this.#wakeUp.cancel()
    this.#feed.close()
    await this.idle()
    if (this.#state === 'closing') this.#enter('closed')
  }

  /** Closes the open segment, which fixes its place in the order of segments. */
  closeSegment(): void {
    this.#segments.close()
  }

  /** Resolves when every segment that was closed so far is durable. */
  async durable(): Promise<void> {
    await this.#segments.ended()
    if (this.#isOver) throw this.#ending
  }

  get #isOver(): boolean {
    return this.#state === 'broken' || this.#state === 'closed'
  }

  #enter(next: LoopState): void {
    this.#state = transition('a loop', loopTransitions, this.#state, next)
  }

  async #fold(): Promise<void> {
    // Everything that is submitted in this turn of the event loop is taken together.
    await undefined
    try {
      while (this.#nudged || this.#shouldFold()) {
        this.#nudged = false
        await this.#take(this.#inbox.take())
        this.#writer.wake()
      }
      this.#setWakeUp()
    } catch (error) {
      this.#break(error)
    } finally {
      this.#folding = undefined
    }
  }

  /** True if waiting submissions should be folded now: nothing waits to be written, or enough came while a segment is written. */
  #shouldFold(): boolean {
    if (this.#writer.isWriting) return this.#inbox.size >= FOLD_TOGETHER
    return this.#inbox.size > 0 && this.#segments.isEmpty
  }

  /** Folds what came meanwhile, for the next segment. Breaks the loop if another process leads: nothing is answered or done then. */
  async #prepare(): Promise<void> {
    await this.#foldAll()
    try {
      await checkLeads(this.#options.lease)
    } catch (error) {
      this.#break(error)
    }
  }

  /** Folds everything that was submitted so far. */
  async #foldAll(): Promise<void> {
    while (this.#folding !== undefined) await this.#folding
    if (this.#inbox.size === 0) return
    this.#nudged = true
    this.#folding = this.#fold()
    await this.#folding
  }

  async #take(batch: readonly Submission[]): Promise<void> {
    let rounds = 0
    await this.compactor.fold.foldAhead(
      batch.flatMap(({ minted }) => minted.checked),
      (verdicts, folded) => {
        this.#foldedEvents.folded(folded, verdicts)
        if (rounds === 0) for (const submission of batch) this.#accept(submission, verdicts)
        assert(rounds++ < MAX_ROUNDS, 'the controllers do not come to an end')
        this.#inbox.folded()
        this.#observe()
        if (this.#awaited.isPending) return []
        if (rounds <= 1 ? !batch.some(isAnsweredFirst) : verdicts.size < MANY_DECISIONS) return this.#decide()
        const much = this.#segments.close()
        // Closed already while cold rows were read: nothing would ask again when it is durable.
        if (much === undefined) return this.#decide()
        this.#awaited.expect(much)
        return []
      },
    )
  }

  #accept(submission: Submission, verdicts: ReadonlyMap<string, Verdict>): void {
    submission.verdicts = verdictsOn(submission, verdicts)
    this.#segments.accept(submission)
  }

  /** Shows changed rows to the controllers, and notes them for the reactors. */
  #observe(): void {
    for (const table of this.#watched) {
      const rows = this.compactor.state.hotTable(table).takeChanged()
      if (rows.size === 0) continue
      this.#controllers.observe(table, rows)
      this.#reactions.remember(this.#segments.changed, table, rows)
    }
    // Moments that controllers computed by a clock that was set since then are computed again.
    if (this.#steps.wasSet()) this.#controllers.observeAll((table) => this.compactor.state.hotTable(table).all())
  }

  /** One round: adds the events that the controllers decide on. */
  #decide(): readonly CheckedEvent[] {
    const observed = { rows: this.compactor.state, now: this.#options.clock.now(), lagMs: this.#feed.lagMs }
    const decided: CheckedEvent[] = []
    for (const together of this.#controllers.decide(observed, () => this.#feed.isCaughtUp())) {
      const minted = this.#mint(together)
      if (this.#segments.isFull && decided.length === 0) this.#segments.close()
      this.#segments.append(minted)
      decided.push(...minted.checked)
    }
    return decided
  }

  /** The next segment to write, if there is one. */
  #next(): ClosedSegment | undefined {
    // Waiting callers got the error, and nothing more may be written or done.
    if (this.#isOver) return undefined
    const segment = this.#segments.take()
    const changed = segment === undefined ? this.#segments.takeChangedByOthers() : undefined
    if (changed !== undefined) this.#reactions.show(changed, this.#break)
    return segment
  }

  /** A segment is durable: its submissions are answered, and the reactors are shown what it changed. */
  #answer(segment: ClosedSegment): void {
    if (this.#isOver) return
    this.#segments.remove(segment)
    for (const submission of segment.submissions) this.#inbox.answer(submission)
    this.#foldedEvents.durable(segment.texts.length)
    this.#reactions.show(segment.changed, this.#break)
    this.#options.onDurable?.(segment.canWait)
    this.#awaited.answered(segment)
  }

  #setWakeUp(): void {
    if (this.#state === 'open') this.#wakeUp.set(this.#controllers.wakeAt(this.#options.clock.now()))
  }

  /** Much will be decided at this moment, perhaps: what can be done before is done now. */
  #prepareFor(now: number): void {
    const events = this.#isOver ? [] : this.#controllers.prepare({ rows: this.compactor.state, now, lagMs: 0 })
    if (events.length === 0) return
    prepareEvents(events)
    const makeRoom = events.length < MANY_DECISIONS ? undefined : this.#options.makeRoom
    void this.compactor.fold.lookAhead(events).then(makeRoom)
  }

  /** An outage passes. A compactor that was overtaken or met a bug does not recover. */
  #troubled(error: unknown): void {
    if (isServoError(error, 'unavailable')) this.#options.onTrouble?.(error)
    else this.#break(error)
  }

  readonly #break = (error: unknown): void => {
    if (this.#isOver) return
    this.#ending = error
    this.#enter('broken')
    this.#wakeUp.cancel()
    this.#feed?.close()
    for (const { reject } of [...this.#segments.giveUp(), ...this.#inbox.giveUp()]) reject(error)
    this.#options.onBroken?.(error)
  }
}
