import { assert } from '../../lib/assert.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'
import type { Controller } from '../../model/controller.ts'
import type { NewEvent, Registry, Verdict } from '../../model/event.ts'
import type { Table } from '../../model/table.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { Notifier } from '../../ports/notifier.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { checkLeads } from '../ledger/leading.ts'
import { type CheckedEvent, type MintOptions, mintEvents, sizeLimits } from '../ledger/mint.ts'
import { SegmentWriter } from '../ledger/segment-writer.ts'
import { Paths } from '../paths.ts'
import { Compactor, type CompactorOptions } from '../publish/compactor.ts'
import { Controllers } from './controllers.ts'
import { Hearing } from './hearing.ts'
import { Inbox, type Submission, type Submitted } from './inbox.ts'
import { Reactions, type Reactor } from './reactions.ts'
import { type ClosedSegment, SegmentQueue } from './segment-queue.ts'

export type { Submitted } from './inbox.ts'
export type { Reactor } from './reactions.ts'

export interface LoopOptions extends MintOptions, Pick<CompactorOptions, 'limits' | 'retention' | 'lease'> {
  readonly store: ObjectStore
  readonly registry: Registry
  readonly clock: AlarmClock
  readonly name: string
  readonly controllers: readonly Controller[]
  readonly reactors?: readonly Reactor[]
  /** How this loop hears of what other processes write, and they of what it writes. */
  readonly notifier?: Notifier
  /** How often it looks at the ledger where it does not hear everything. */
  readonly lookEveryMs?: number
  /** Called when the loop cannot continue: the ledger could not be written, or another process has taken over. */
  readonly onBroken?: (error: unknown) => void
  /** Told when there is something durable that no table shows yet. */
  readonly onDurable?: () => void
  /** Told when the ledger could not be looked at. It is tried again. */
  readonly onTrouble?: (error: unknown) => void
}

/** Submissions that are folded at once while a segment is written: enough to share the work, few enough not to be idle. */
const FOLD_TOGETHER = 4
/** Controllers that answer each other for longer than this would never end. */
const MAX_ROUNDS = 10_000

type LoopState = 'open' | 'closing' | 'closed' | 'broken'

/** Where each state may lead. */
const transitions: Transitions<LoopState> = {
  open: ['closing', 'broken'],
  closing: ['closed', 'broken'],
  closed: [],
  broken: [],
}

/**
 * Facts in, decisions out, one durable write for both. A fact is folded as soon as it is submitted; the controllers see what
 * it changed and add what follows to the same segment; only when that segment is durable is a caller told or anything done.
 * While one segment is written the next one fills, so a busy loop writes fewer, larger segments by itself.
 *
 * Its states:
 * - `open`: facts are taken, folded, written and answered.
 * - `closing`: no more facts are let in, and what was let in is written and answered; then `closed`.
 * - `broken`: memory is ahead of the ledger by the segments in flight, and one of them could not be written, or this process
 *   leads no longer. Memory is worth nothing then: every caller who waits is told, nothing more comes of it, and the owner opens
 *   another loop from what is durable.
 */
export class Loop {
  readonly compactor: Compactor
  readonly #options: LoopOptions
  readonly #controllers: Controllers
  readonly #reactions: Reactions
  readonly #watched: readonly Table[]
  readonly #inbox = new Inbox()
  readonly #segments: SegmentQueue
  readonly #writer: SegmentWriter<ClosedSegment>
  #state: LoopState = 'open'
  /** What a caller who comes too late is told. */
  #ending: unknown
  /** The controllers are to be asked, though nothing was submitted. */
  #nudged = false
  /** Set while something is being folded. */
  #folding: Promise<void> | undefined
  #cancelAlarm: (() => void) | undefined
  #hearing!: Hearing

  private constructor(options: LoopOptions, compactor: Compactor) {
    this.#options = options
    this.compactor = compactor
    this.#controllers = new Controllers(options.controllers)
    this.#reactions = new Reactions(options.reactors ?? [])
    this.#watched = [...new Set([...this.#controllers.tables, ...this.#reactions.tables])]
    for (const table of this.#watched) compactor.state.hotTable(table).watch()
    this.#segments = new SegmentQueue((segment) => {
      compactor.record(segment.consumed, segment.texts.length)
      this.#writer.wake()
    })
    const { store, clock, ulid, scope } = options
    this.#writer = new SegmentWriter(
      { store, clock, ulid, paths: new Paths(scope), days: compactor },
      {
        prepare: () => this.#prepare(),
        take: () => this.#next(),
        named: (segment, name) => compactor.name(segment.consumed, name),
        written: (segment, name) => {
          this.#hearing.announce(name)
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
    loop.#hearing = await Hearing.open({
      compactor,
      scope: options.scope,
      clock: options.clock,
      notifier: options.notifier,
      lookEveryMs: options.lookEveryMs,
      onCaughtUp: () => self.loop?.caughtUp(),
      onTrouble: (error) => loop.#troubled(error),
    })
    self.loop = loop
    // What it met while it was opened may have broken it: a caller must not take it for one that works.
    if (loop.#isOver) throw loop.#ending
    return loop
  }

  /**
   * Looks at every row as if it had just changed. Everything begins with this; done again later, it finds what an alarm lost
   * or a crash left behind, because controllers and reactors do nothing twice.
   */
  sweep(): void {
    const { state } = this.compactor
    // Reactors are shown them later: some of these rows may owe what they are to a segment that is still being written.
    const { changed } = this.#segments
    for (const table of this.#reactions.tables) this.#reactions.remember(changed, table, new Set(state.hotTable(table).all()))
    this.#controllers.observeAll((table) => state.hotTable(table).all())
    this.nudge()
  }

  /** Writes facts, with everything that follows from them. Resolves when they are durable, with what became of each. */
  async submit(events: readonly NewEvent[]): Promise<Submitted> {
    if (this.#state !== 'open') throw this.#ending
    const minted = mintEvents(this.#options, sizeLimits, events)
    return await this.#inbox.add(minted, () => {
      // While a segment is written nothing is won by folding one fact at a time; a few together cost half.
      if (this.#shouldFold()) this.#folding ??= this.#fold()
    })
  }

  /** Asks the controllers again: time has passed, or facts of other processes were folded. */
  nudge(): void {
    if (this.#isOver) return
    this.#nudged = true
    this.#folding ??= this.#fold()
  }

  /** What other processes wrote is folded: the controllers are asked, and the tables are behind. */
  caughtUp(): void {
    this.nudge()
    if (this.compactor.unpublished > 0) this.#options.onDurable?.()
  }

  /** Folds what other processes have written. */
  async catchUp(): Promise<number> {
    const folded = await this.compactor.catchUp()
    if (folded > 0) this.nudge()
    return folded
  }

  /** Resolves when everything that was submitted is durable and nothing more follows from it for now. */
  async idle(): Promise<void> {
    while (this.#folding !== undefined || this.#writer.isBusy) {
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
    this.#cancelAlarm?.()
    this.#hearing.close()
    await this.idle()
    if (this.#state === 'closing') this.#enter('closed')
  }

  /** What was folded so far becomes a segment, in the order of things from now on. */
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
    this.#state = transition('a loop', transitions, this.#state, next)
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
      this.#setAlarm()
    } catch (error) {
      this.#break(error)
    } finally {
      this.#folding = undefined
    }
  }

  /** True if what waits is folded now: when nothing waits to be written, or enough has come while something is. */
  #shouldFold(): boolean {
    if (this.#writer.isWriting) return this.#inbox.size >= FOLD_TOGETHER
    return this.#inbox.size > 0 && this.#segments.isEmpty
  }

  /** What came meanwhile goes into the next segment. And nothing is answered or done once another process leads. */
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
    await this.compactor.foldAhead(
      batch.flatMap(({ minted }) => minted.checked),
      (verdicts) => {
        if (rounds === 0) for (const submission of batch) this.#accept(submission, verdicts)
        assert(rounds++ < MAX_ROUNDS, 'the controllers do not come to an end')
        this.#inbox.folded()
        return this.#decide()
      },
    )
  }

  #accept(submission: Submission, verdicts: ReadonlyMap<string, Verdict>): void {
    submission.verdicts = submission.minted.events.map((event) => {
      const verdict = verdicts.get(event.event_id)
      assert(verdict !== undefined, 'an event that was folded has a verdict')
      return verdict
    })
    this.#segments.accept(submission)
  }

  /** One round: what changed is shown to the controllers, and what they decide is added. */
  #decide(): readonly CheckedEvent[] {
    const { state } = this.compactor
    for (const table of this.#watched) {
      const rows = state.hotTable(table).takeChanged()
      if (rows.size === 0) continue
      this.#controllers.observe(table, rows)
      this.#reactions.remember(this.#segments.changed, table, rows)
    }
    const observed = { rows: state, now: this.#options.clock.now(), lagMs: this.#hearing.lagMs }
    const decided: CheckedEvent[] = []
    for (const event of this.#controllers.decide(observed, () => this.#hearing.isCaughtUp())) {
      const minted = mintEvents(this.#options, sizeLimits, [event])
      if (this.#segments.isFull && decided.length === 0) this.#segments.close()
      this.#segments.append(minted)
      decided.push(...minted.checked)
    }
    return decided
  }

  /** What is to be written next. */
  #next(): ClosedSegment | undefined {
    // Memory became worth nothing: every caller who waited was told, and nothing more may come of it.
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
    this.#reactions.show(segment.changed, this.#break)
    this.#options.onDurable?.()
  }

  #setAlarm(): void {
    this.#cancelAlarm?.()
    this.#cancelAlarm = undefined
    const { clock } = this.#options
    const next = this.#controllers.wakeAt(clock.now())
    if (next === Number.POSITIVE_INFINITY || this.#state !== 'open') return
    this.#cancelAlarm = clock.after(Math.max(1, next - clock.now()), () => this.nudge())
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
    this.#cancelAlarm?.()
    this.#hearing?.close()
    for (const { reject } of [...this.#segments.giveUp(), ...this.#inbox.giveUp()]) reject(error)
    this.#options.onBroken?.(error)
  }
}
