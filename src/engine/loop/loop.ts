import { assert } from '../../lib/assert.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import { SECOND_MS } from '../../lib/time.ts'
import { type Controller, mustWait } from '../../model/controller.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { NewEvent, Registry, Verdict } from '../../model/event.ts'
import type { Table } from '../../model/table.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { Notifier } from '../../ports/notifier.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { Consumed } from '../ledger/consumed.ts'
import { Hearing } from '../ledger/hearing.ts'
import { checkLeads } from '../ledger/leading.ts'
import { type Made, type Minted, type MintOptions, mintEvents, sizeLimits } from '../ledger/mint.ts'
import { SegmentWriter } from '../ledger/segment-writer.ts'
import { Paths } from '../paths.ts'
import { Compactor, type CompactorOptions } from '../publish/compactor.ts'
import { type ChangedRows, Reactions, type Reactor } from './reactions.ts'

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

/** What became of the events of one submission. */
export interface Submitted {
  readonly events: readonly Envelope[]
  readonly verdicts: readonly Verdict[]
}

interface Submission {
  readonly minted: Minted
  verdicts: Verdict[]
  resolve(submitted: Submitted): void
  reject(error: unknown): void
}

/** Events that are folded and will be written together. */
interface OpenSegment {
  readonly texts: string[]
  bytes: number
  readonly submissions: Submission[]
  readonly changed: ChangedRows
}

interface SealedSegment extends OpenSegment {
  readonly consumed: Consumed
  readonly settled: PromiseWithResolvers<void>
}

/** What may wait for the write in flight before submissions are refused. */
const MAX_WAITING_BYTES = 128 << 20
/** A segment this large takes no more: what follows goes into the next. */
const FULL_SEGMENT_BYTES = sizeLimits.maxSegmentBytes / 2
/** Submissions that are folded at once while a segment is written: enough to share the work, few enough not to be idle. */
const FOLD_TOGETHER = 4
/** While events may be unread, how long whoever acts on what did not happen waits before asking again. */
const ASK_AGAIN_MS = 10 * SECOND_MS
/** Controllers that answer each other for longer than this would never end. */
const MAX_ROUNDS = 10_000

type LoopState = 'open' | 'closing' | 'closed' | 'broken'

/** Where each state may lead. */
const transitions: Record<LoopState, readonly LoopState[]> = {
  open: ['closing', 'broken'],
  closing: ['closed', 'broken'],
  closed: [],
  broken: [],
}

/**
 * Facts in, decisions out, one durable write for both. A fact is folded as soon as it is submitted; the controllers see what
 * it changed and add what follows to the same segment; only when that segment is durable is anybody told or anything done.
 * While one segment is written the next one fills, so a busy loop writes fewer, larger segments by itself.
 *
 * Its states:
 * - `open`: facts are taken, folded, written and answered.
 * - `closing`: nobody is let in any more, what was let in is written and answered; then `closed`.
 * - `broken`: memory is ahead of the ledger by the segments in flight, and one of them could not be written, or this process
 *   leads no longer. Memory is worth nothing then: everybody who waits is told, nothing more comes of it, and its owner opens
 *   another loop from what is durable.
 *
 * A segment goes through `#open` (it fills), `#sealed` (it has its place in the order), its write, and is settled: its
 * submissions are answered, and the reactors are shown what it changed.
 */
export class Loop {
  readonly compactor: Compactor
  readonly #options: LoopOptions
  readonly #watched: readonly Table[]
  readonly #reactions: Reactions
  readonly #writer: SegmentWriter<SealedSegment>
  #state: LoopState = 'open'
  /** What whoever comes too late is told. */
  #ending: unknown
  #inbox: Submission[] = []
  /** Out of the inbox, not folded yet. */
  #taking: readonly Submission[] = []
  #waitingBytes = 0
  #open: OpenSegment | undefined
  /** Not settled yet, oldest first; of these the writer has taken the first few. */
  readonly #sealed: SealedSegment[] = []
  #taken = 0
  /** The controllers are to be asked, though nothing was submitted. */
  #nudged = false
  /** Set while something is being folded. */
  #folding: Promise<void> | undefined
  #cancelAlarm: (() => void) | undefined
  #hearing!: Hearing

  private constructor(options: LoopOptions, compactor: Compactor) {
    this.#options = options
    this.compactor = compactor
    this.#reactions = new Reactions(options.reactors ?? [])
    this.#watched = [...new Set([...options.controllers.flatMap(({ watches }) => watches), ...this.#reactions.tables])]
    for (const table of this.#watched) compactor.state.hotTable(table).watch()
    const { store, clock, ulid, scope } = options
    this.#writer = new SegmentWriter(
      { store, clock, ulid, paths: new Paths(scope), days: compactor },
      {
        prepare: () => this.#prepare(),
        take: () => this.#next(),
        named: (segment, name) => compactor.name(segment.consumed, name),
        written: (segment, name) => {
          this.#hearing.announce(name)
          this.#settle(segment)
        },
        failed: (_, error) => this.#break(error),
      },
    )
  }

  /** Opens the newest state and folds what the ledger holds beyond it. Nothing is decided before the first sweep. */
  static async open(options: LoopOptions): Promise<Loop> {
    const self: { loop?: Loop } = {}
    const ahead = { seal: () => self.loop?.seal(), durable: async () => self.loop?.durable() }
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
    // Broken by what it met while it was opened: nobody may take it for one that works.
    if (loop.#isOver) throw loop.#ending
    return loop
  }

  /**
   * Looks at every row as if it had just changed. Everything begins with this; done again later, it finds what an alarm lost
   * or a crash left behind, because whoever decides or acts does nothing twice.
   */
  sweep(): void {
    const { state } = this.compactor
    // Not at once: some of these rows may owe what they are to a segment that is still being written.
    const { changed } = this.#opened()
    for (const table of this.#reactions.tables) this.#reactions.remember(changed, table, new Set(state.hotTable(table).all()))
    for (const controller of this.#options.controllers) {
      for (const table of controller.watches) {
        for (const row of state.hotTable(table).all()) controller.observe(table, row)
      }
    }
    this.nudge()
  }

  /** Writes facts, with everything that follows from them. Resolves when they are durable, with what became of each. */
  async submit(events: readonly NewEvent[]): Promise<Submitted> {
    if (this.#state !== 'open') throw this.#ending
    const minted = mintEvents(this.#options, sizeLimits, events)
    if (this.#waitingBytes + minted.bytes > MAX_WAITING_BYTES) {
      throw new ServoError('unavailable', 'ledger_busy', `${this.#waitingBytes} bytes are waiting to be written`, {
        hint: 'Slow down and try again.',
      })
    }
    return await new Promise((resolve, reject) => {
      this.#waitingBytes += minted.bytes
      this.#inbox.push({ minted, verdicts: [], resolve, reject })
      // While a segment is written nothing is won by folding one fact at a time; a few together cost half.
      if (this.#shouldFold()) this.#folding ??= this.#fold()
    })
  }

  /** Asks the controllers again: time has passed, or somebody else's facts were folded. */
  nudge(): void {
    if (this.#isOver) return
    this.#nudged = true
    this.#folding ??= this.#fold()
  }

  /** What others wrote is folded: the controllers are asked, and the tables are behind. */
  caughtUp(): void {
    this.nudge()
    if (this.compactor.unpublished > 0) this.#options.onDurable?.()
  }

  /** Folds what others have written. */
  async catchUp(): Promise<number> {
    const folded = await this.compactor.catchUp()
    if (folded > 0) this.nudge()
    return folded
  }

  /** Resolves when all that was submitted is durable and nothing more follows from it for now. */
  async settled(): Promise<void> {
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
    await this.settled()
    if (this.#state === 'closing') this.#enter('closed')
  }

  /** What was folded so far becomes a segment, in the order of things from now on. */
  seal(): void {
    const open = this.#open
    if (open === undefined || open.texts.length === 0) return
    this.#open = undefined
    const segment: SealedSegment = { ...open, consumed: {}, settled: Promise.withResolvers() }
    this.compactor.record(segment.consumed, open.texts.length)
    this.#sealed.push(segment)
    this.#writer.wake()
  }

  /** Resolves when everything sealed so far is durable. */
  async durable(): Promise<void> {
    await this.#sealed.at(-1)?.settled.promise
    if (this.#isOver) throw this.#ending
  }

  get #isOver(): boolean {
    return this.#state === 'broken' || this.#state === 'closed'
  }

  #enter(next: LoopState): void {
    assert(transitions[this.#state].includes(next), `a loop that is ${this.#state} does not become ${next}`)
    this.#state = next
  }

  async #fold(): Promise<void> {
    // Everything that is submitted in this turn of the event loop is taken together.
    await undefined
    try {
      while (this.#nudged || this.#shouldFold()) {
        const batch = this.#inbox.splice(0)
        this.#nudged = false
        await this.#take(batch)
        this.#writer.wake()
      }
      this.#setAlarm()
    } catch (error) {
      this.#break(error)
    } finally {
      this.#folding = undefined
    }
  }

  /** Whether what waits is folded now: when nothing waits to be written, or enough has come while something is. */
  #shouldFold(): boolean {
    if (this.#writer.isWriting) return this.#inbox.length >= FOLD_TOGETHER
    const isWaiting = this.#sealed.length > 0 || (this.#open?.texts.length ?? 0) > 0
    return this.#inbox.length > 0 && !isWaiting
  }

  /** What came meanwhile goes into the next segment. And nobody is answered or acted for once somebody else leads. */
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
    if (this.#inbox.length === 0) return
    this.#nudged = true
    this.#folding = this.#fold()
    await this.#folding
  }

  async #take(batch: readonly Submission[]): Promise<void> {
    let first = true
    let rounds = 0
    this.#taking = batch
    await this.compactor.foldAhead(
      batch.flatMap(({ minted }) => minted.made),
      (verdicts) => {
        assert(rounds++ < MAX_ROUNDS, 'the controllers do not come to an end')
        if (first) for (const submission of batch) this.#accept(submission, verdicts)
        first = false
        this.#taking = []
        return this.#decide()
      },
    )
  }

  #accept(submission: Submission, verdicts: ReadonlyMap<string, Verdict>): void {
    const { minted } = submission
    submission.verdicts = minted.events.map((event) => verdicts.get(event.event_id) as Verdict)
    this.#append(minted).submissions.push(submission)
  }

  #append(minted: Minted): OpenSegment {
    if ((this.#open?.bytes ?? 0) + minted.bytes > sizeLimits.maxSegmentBytes) this.seal()
    const open = this.#opened()
    for (const text of minted.texts) open.texts.push(text)
    open.bytes += minted.bytes
    return open
  }

  #opened(): OpenSegment {
    this.#open ??= { texts: [], bytes: 0, submissions: [], changed: new Map() }
    return this.#open
  }

  /** One round: what changed is shown to whoever watches it, and what they decide is added. */
  #decide(): readonly Made[] {
    const { state } = this.compactor
    for (const table of this.#watched) {
      const rows = state.hotTable(table).takeChanged()
      if (rows.size === 0) continue
      for (const controller of this.#options.controllers) {
        if (controller.watches.includes(table)) for (const row of rows) controller.observe(table, row)
      }
      this.#reactions.remember(this.#opened().changed, table, rows)
    }
    const now = this.#options.clock.now()
    const observed = { rows: state, now, lagMs: this.#hearing.lagMs }
    const decided: Made[] = []
    for (const controller of this.#options.controllers) {
      if (mustWait(controller, now) && !this.#hearing.isCaughtUp()) continue
      for (const event of controller.decide(observed)) {
        const minted = mintEvents(this.#options, sizeLimits, [event])
        if ((this.#open?.bytes ?? 0) > FULL_SEGMENT_BYTES && decided.length === 0) this.seal()
        this.#append(minted)
        decided.push(...minted.made)
      }
    }
    return decided
  }

  /** What is to be written next. */
  #next(): SealedSegment | undefined {
    // Memory became worth nothing: whoever waited was told, and nothing more may come of it.
    if (this.#isOver) return undefined
    if (this.#taken === this.#sealed.length) this.seal()
    const segment = this.#sealed[this.#taken]
    if (segment !== undefined) this.#taken += 1
    else this.#reactToOthers()
    return segment
  }

  #settle(segment: SealedSegment): void {
    if (this.#isOver) return
    assert(this.#sealed.shift() === segment, 'segments are settled in the order in which they were sealed')
    this.#taken -= 1
    for (const { minted, verdicts, resolve } of segment.submissions) {
      this.#waitingBytes -= minted.bytes
      resolve({ events: minted.events, verdicts })
    }
    segment.settled.resolve()
    this.#react(segment.changed)
    this.#options.onDurable?.()
  }

  /** Rows that changed by what other processes wrote: that is durable already. */
  #reactToOthers(): void {
    const open = this.#open
    if (open === undefined || open.texts.length > 0) return
    this.#open = undefined
    this.#react(open.changed)
  }

  #react(changed: ChangedRows): void {
    this.#reactions.show(changed, (error) => this.#break(error))
  }

  #setAlarm(): void {
    this.#cancelAlarm?.()
    this.#cancelAlarm = undefined
    let next = Number.POSITIVE_INFINITY
    const { clock } = this.#options
    for (const controller of this.#options.controllers) {
      // Whoever is due and was not asked waits for what may be unread.
      const again = mustWait(controller, clock.now()) ? clock.now() + ASK_AGAIN_MS : controller.wakeAt?.()
      next = Math.min(next, again ?? next)
    }
    if (next === Number.POSITIVE_INFINITY || this.#state !== 'open') return
    this.#cancelAlarm = clock.after(Math.max(1, next - clock.now()), () => this.nudge())
  }

  /** An outage passes; what a compactor that was overtaken, or met a bug, says does not. */
  #troubled(error: unknown): void {
    if (isServoError(error, 'unavailable')) this.#options.onTrouble?.(error)
    else this.#break(error)
  }

  #break(error: unknown): void {
    if (this.#isOver) return
    this.#ending = error
    this.#enter('broken')
    this.#cancelAlarm?.()
    this.#hearing?.close()
    const segments = this.#sealed.splice(0)
    this.#taken = 0
    const folded = [...segments, ...(this.#open === undefined ? [] : [this.#open])]
    this.#open = undefined
    const waiting = [...folded.flatMap(({ submissions }) => submissions), ...this.#taking, ...this.#inbox.splice(0)]
    for (const { reject } of waiting) reject(error)
    for (const { settled } of segments) settled.resolve()
    this.#options.onBroken?.(error)
  }
}
