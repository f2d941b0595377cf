import { assert } from '../lib/assert.ts'
import { ServoError } from '../lib/error.ts'
import type { Controller } from '../model/controller.ts'
import type { Envelope } from '../model/envelope.ts'
import type { NewEvent, Registry, Verdict } from '../model/event.ts'
import type { AnyRow, Table } from '../model/table.ts'
import type { AlarmClock } from '../ports/clock.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import { Compactor, type CompactorOptions } from './compactor.ts'
import { type Made, type Minted, type MintOptions, mintEvents, sizeLimits } from './mint.ts'
import { Paths } from './paths.ts'
import { encodeSegment } from './segment.ts'
import { backoffMs, createOnce } from './segment-writer.ts'

export interface LoopOptions extends MintOptions, Pick<CompactorOptions, 'limits' | 'retention' | 'lookbackMs'> {
  readonly store: ObjectStore
  readonly registry: Registry
  readonly clock: AlarmClock
  readonly name: string
  readonly controllers: readonly Controller[]
  readonly reactors?: readonly Reactor[]
  /** Told when this loop can go on no more: the ledger could not be written, or another process has taken over. */
  readonly onBroken?: (error: unknown) => void
  /** Told of every segment once it is durable. */
  readonly onDurable?: () => void
}

/** Does something in the world because of a row, once what made the row so is durable. */
export interface Reactor {
  readonly watches: Table
  react(row: Readonly<AnyRow>): void
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
  readonly changed: Map<Table, Set<AnyRow>>
}

interface SealedSegment extends OpenSegment {
  readonly ulid: string
  readonly written: PromiseWithResolvers<void>
}

/** What may wait for the write in flight before submissions are refused. */
const MAX_WAITING_BYTES = 128 << 20
/** A segment this large takes no more: what follows goes into the next. */
const FULL_SEGMENT_BYTES = sizeLimits.maxSegmentBytes / 2
const MAX_WRITE_ATTEMPTS = 5
/** Submissions that are folded at once while a segment is written: enough to share the work, few enough not to be idle. */
const FOLD_TOGETHER = 4
/** Controllers that answer each other for longer than this would never end. */
const MAX_ROUNDS = 10_000

/**
 * Facts in, decisions out, one durable write for both. A fact is folded as soon as it is submitted; the controllers see what
 * it changed and add what follows to the same segment; only when that segment is durable is anybody told or anything done.
 * While one segment is written the next one fills, so a busy loop writes fewer, larger segments by itself.
 *
 * Memory is ahead of the ledger by the segments in flight. If one cannot be written, memory is worth nothing: the loop
 * breaks, everybody who waits is told, and its owner opens another from what is durable.
 */
export class Loop {
  readonly compactor: Compactor
  readonly #options: LoopOptions
  readonly #paths: Paths
  readonly #watched: readonly Table[]
  readonly #reactors = new Map<Table, Reactor[]>()
  #inbox: Submission[] = []
  /** Out of the inbox, not folded yet. */
  #taking: readonly Submission[] = []
  #waitingBytes = 0
  #nudged = false
  #pumping: Promise<void> | undefined
  #open: OpenSegment | undefined
  readonly #sealed: SealedSegment[] = []
  #writing: Promise<void> | undefined
  /** Whether a segment is being written at this moment. */
  #inFlight = false
  #broken: unknown
  #cancelAlarm: (() => void) | undefined

  private constructor(options: LoopOptions, compactor: Compactor) {
    this.#options = options
    this.#paths = new Paths(options.scope)
    this.compactor = compactor
    const tables = new Set([...options.controllers.flatMap(({ watches }) => watches)])
    for (const reactor of options.reactors ?? []) {
      tables.add(reactor.watches)
      this.#reactors.set(reactor.watches, [...(this.#reactors.get(reactor.watches) ?? []), reactor])
    }
    this.#watched = [...tables]
    for (const table of this.#watched) compactor.state.hotTable(table).watch()
  }

  /** Opens the newest state and folds what the ledger holds beyond it. Nothing is decided before the first sweep. */
  static async open(options: LoopOptions): Promise<Loop> {
    const self: { loop?: Loop } = {}
    const ahead = { seal: () => self.loop?.seal(), durable: async () => self.loop?.durable() }
    const compactor = await Compactor.open({ ...options, ahead })
    await compactor.catchUp()
    const loop = new Loop(options, compactor)
    self.loop = loop
    return loop
  }

  /**
   * Looks at every row as if it had just changed. Everything begins with this; done again later, it finds what an alarm lost
   * or a crash left behind, because whoever decides or acts does nothing twice.
   */
  sweep(): void {
    // Not at once: some of these rows may owe what they are to a segment that is still being written.
    for (const table of this.#reactors.keys()) this.#remember(table, new Set(this.compactor.state.hotTable(table).all()))
    for (const controller of this.#options.controllers) {
      for (const table of controller.watches) {
        for (const row of this.compactor.state.hotTable(table).all()) controller.observe(table, row)
      }
    }
    this.nudge()
  }

  /** Writes facts, with everything that follows from them. Resolves when they are durable, with what became of each. */
  async submit(events: readonly NewEvent[]): Promise<Submitted> {
    this.#check()
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
      if (this.#shouldFold()) this.#pumping ??= this.#pump()
    })
  }

  /** Asks the controllers again: time has passed, or somebody else's facts were folded. */
  nudge(): void {
    if (this.#broken !== undefined) return
    this.#nudged = true
    this.#pumping ??= this.#pump()
  }

  /** Folds what others have written. */
  async catchUp(): Promise<number> {
    const folded = await this.compactor.catchUp()
    if (folded > 0) this.nudge()
    return folded
  }

  /** Resolves when all that was submitted is durable and nothing more follows from it for now. */
  async settled(): Promise<void> {
    while (this.#pumping !== undefined || this.#writing !== undefined) {
      await this.#pumping
      await this.#writing
    }
  }

  /** Stops deciding and waits for what is being written. */
  async close(): Promise<void> {
    this.#cancelAlarm?.()
    await this.settled()
    this.#broken ??= new ServoError('unavailable', 'closed', 'this process is shutting down', { hint: 'Try again.' })
  }

  /** What was folded so far becomes a segment, in the order of things from now on. */
  seal(): void {
    const open = this.#open
    if (open === undefined || open.texts.length === 0) return
    this.#open = undefined
    const ulid = this.#options.ulid()
    this.compactor.record(ulid, open.texts.length)
    this.#sealed.push({ ...open, ulid, written: Promise.withResolvers() })
    this.#writing ??= this.#write()
  }

  /** Resolves when everything sealed so far is durable. */
  async durable(): Promise<void> {
    await this.#sealed.at(-1)?.written.promise
    this.#check()
  }

  async #pump(): Promise<void> {
    // Everything that is submitted in this turn of the event loop is taken together.
    await undefined
    try {
      while (this.#nudged || this.#shouldFold()) {
        const batch = this.#inbox.splice(0)
        this.#nudged = false
        await this.#take(batch)
        this.#writing ??= this.#write()
      }
      this.#setAlarm()
    } catch (error) {
      this.#break(error)
    } finally {
      this.#pumping = undefined
    }
  }

  /** Whether what waits is folded now: when nothing waits to be written, or enough has come while something is. */
  #shouldFold(): boolean {
    if (this.#inFlight) return this.#inbox.length >= FOLD_TOGETHER
    const isWaiting = this.#sealed.length > 0 || (this.#open?.texts.length ?? 0) > 0
    return this.#inbox.length > 0 && !isWaiting
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
    const open = this.#append(minted)
    open.submissions.push(submission)
  }

  #append(minted: Minted): OpenSegment {
    if ((this.#open?.bytes ?? 0) + minted.bytes > sizeLimits.maxSegmentBytes) this.seal()
    this.#open ??= { texts: [], bytes: 0, submissions: [], changed: new Map() }
    for (const text of minted.texts) this.#open.texts.push(text)
    this.#open.bytes += minted.bytes
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
      if (this.#reactors.has(table)) this.#remember(table, rows)
    }
    const observed = { rows: state, now: this.#options.clock.now(), lagMs: 0 }
    const decided: Made[] = []
    for (const controller of this.#options.controllers) {
      for (const event of controller.decide(observed)) {
        const minted = mintEvents(this.#options, sizeLimits, [event])
        if ((this.#open?.bytes ?? 0) > FULL_SEGMENT_BYTES && decided.length === 0) this.seal()
        this.#append(minted)
        decided.push(...minted.made)
      }
    }
    return decided
  }

  #remember(table: Table, rows: ReadonlySet<AnyRow>): void {
    this.#open ??= { texts: [], bytes: 0, submissions: [], changed: new Map() }
    const known = this.#open.changed.get(table)
    if (known === undefined) this.#open.changed.set(table, new Set(rows))
    else for (const row of rows) known.add(row)
  }

  async #write(): Promise<void> {
    // What is decided in this turn of the event loop goes along.
    await undefined
    try {
      let writing = this.#begin()
      while (writing !== undefined) {
        await writing.done
        this.#inFlight = false
        // What came meanwhile goes into the next one.
        await this.#foldAll()
        // Memory became worth nothing meanwhile: whoever waited was told, and nothing more may come of it.
        if (this.#broken !== undefined) return
        this.#sealed.shift()
        // The disk has its next before anybody hears of this one: what they do then takes as long as a write.
        const next = this.#begin()
        this.#settle(writing.segment)
        if (next === undefined) await this.#foldAll()
        writing = next ?? this.#begin()
      }
      this.#reactToOthers()
    } catch (error) {
      this.#break(error)
    } finally {
      this.#writing = undefined
    }
  }

  /** Begins to write what waits, if anything does. */
  #begin(): { segment: SealedSegment; done: Promise<void> } | undefined {
    if (this.#sealed.length === 0) this.seal()
    const segment = this.#sealed[0]
    if (segment === undefined) return undefined
    this.#inFlight = true
    const done = this.#writeSegment(segment)
    // Whoever waits for it is told, but that may be a moment later.
    done.catch(() => undefined)
    return { segment, done }
  }

  async #foldAll(): Promise<void> {
    await this.#pumping
    if (this.#inbox.length === 0) return
    this.#nudged = true
    this.#pumping = this.#pump()
    await this.#pumping
  }

  async #writeSegment({ ulid, texts }: SealedSegment): Promise<void> {
    const { store, clock } = this.#options
    const bytes = encodeSegment(texts)
    for (let attempt = 1; ; attempt++) {
      const outcome = await createOnce(store, this.#paths.segment(ulid), bytes)
      if (outcome === 'written') return
      assert(outcome !== 'taken', `two segments are named ${ulid}`)
      if (attempt >= MAX_WRITE_ATTEMPTS) throw outcome.error
      await clock.sleep(backoffMs(attempt))
    }
  }

  #settle(segment: SealedSegment): void {
    for (const { minted, verdicts, resolve } of segment.submissions) {
      this.#waitingBytes -= minted.bytes
      resolve({ events: minted.events, verdicts })
    }
    segment.written.resolve()
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

  #react(changed: ReadonlyMap<Table, ReadonlySet<AnyRow>>): void {
    for (const [table, rows] of changed) {
      for (const reactor of this.#reactors.get(table) ?? []) for (const row of rows) this.#carryOut(reactor, row)
    }
  }

  #carryOut(reactor: Reactor, row: AnyRow): void {
    try {
      reactor.react(row)
    } catch (error) {
      this.#break(error)
    }
  }

  #setAlarm(): void {
    this.#cancelAlarm?.()
    this.#cancelAlarm = undefined
    let next = Number.POSITIVE_INFINITY
    for (const controller of this.#options.controllers) next = Math.min(next, controller.wakeAt?.() ?? next)
    if (next === Number.POSITIVE_INFINITY || this.#broken !== undefined) return
    const { clock } = this.#options
    this.#cancelAlarm = clock.after(Math.max(1, next - clock.now()), () => this.nudge())
  }

  #break(error: unknown): void {
    if (this.#broken !== undefined) return
    this.#broken = error
    this.#cancelAlarm?.()
    const segments = this.#sealed.splice(0)
    const folded = [...segments, ...(this.#open === undefined ? [] : [this.#open])]
    this.#open = undefined
    const waiting = [...folded.flatMap(({ submissions }) => submissions), ...this.#taking, ...this.#inbox.splice(0)]
    for (const { reject } of waiting) reject(error)
    for (const { written } of segments) written.resolve()
    this.#options.onBroken?.(error)
  }

  #check(): void {
    if (this.#broken !== undefined) throw this.#broken
  }
}
