import { isDeepStrictEqual } from 'node:util'
import type { ProjectManifest } from '../../contract/definition.ts'
import type { dispatchOutbox } from '../../domain/dispatch/dispatch-outbox.table.ts'
import type { Limits } from '../../domain/dispatch/room.ts'
import { orchestration } from '../../domain/index.ts'
import { isRunOver, runs } from '../../domain/runs/runs.table.ts'
import type { TaskRow } from '../../domain/tasks/tasks.table.ts'
import { collectGarbage } from '../../engine/gc.ts'
import { Loop, type LoopOptions, type Reactor, type Submitted } from '../../engine/loop.ts'
import { Paths, type Scope } from '../../engine/paths.ts'
import { Publisher } from '../../engine/publisher.ts'
import { isServoError } from '../../lib/error.ts'
import { MINUTE_MS, SECOND_MS } from '../../lib/time.ts'
import type { UlidSource } from '../../lib/ulid.ts'
import type { NewEvent } from '../../model/event.ts'
import { historyIndex } from '../../model/system-tables.ts'
import type { Row } from '../../model/table.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { controllersOf } from './controllers.ts'
import { CurrentGraph } from './current-graph.ts'
import { ForeignDispatch, type ForeignDispatchOptions } from './foreign-dispatch.ts'
import { envelopeFor } from './inputs.ts'
import { LocalDispatch } from './local-dispatch.ts'
import { AttemptLogs } from './logs.ts'
import type { Workers } from './workers.ts'

export type OrchestratorSettings = Partial<Pick<ProjectManifest, 'concurrency' | 'queues' | 'timing'>>

export interface OrchestratorOptions {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly clock: AlarmClock
  readonly ulid: UlidSource
  /** Names this process: in manifests, and in front of its workers. New for every start. */
  readonly instance: string
  readonly workers: Workers
  /** How many attempts may run here at a time. */
  readonly concurrency: () => number
  /** What the project says of limits and patience now. Read whenever it matters; `settingsChanged` makes a change count at once. */
  readonly settings?: () => OrchestratorSettings
  /** How workers that are not ours are told of work, and where to look for what they did long ago. */
  readonly foreign?: Pick<ForeignDispatchOptions, 'history' | 'post'>
  /** Besides running tasks, what else shall follow from rows once they are durable. */
  readonly reactors?: readonly Reactor[]
  readonly publishDelayMs?: number
  /** Another process has taken over, or the store cannot be reached for long: this one is of no use any more. */
  readonly onStopped?: (error: unknown) => void
  /** Trouble that did not stop anything. */
  readonly onTrouble?: (error: unknown) => void
  readonly compaction?: Pick<LoopOptions, 'limits' | 'retention' | 'lookbackMs'>
}

const CANCEL_GRACE_MS = 10 * SECOND_MS
/** How often every row is looked at again, while there is anything unfinished. */
const SWEEP_MS = 5 * MINUTE_MS
/** Long enough for a machine to be started for the work; an attempt that is offered too often is still begun only once. */
const STUCK_DISPATCH_MS = 10 * MINUTE_MS
/** Whoever stops a server waits for it to end. */
const MAX_LAST_PUBLISH_MS = 400
/** A loop that broke is opened again this often before the process gives up. */
const MAX_REOPENS = 5

/** The process that folds and decides: the loop, its controllers, the workers of this machine, and publishing behind it all. */
export class Orchestrator {
  readonly logs: AttemptLogs
  /** The assets on record. */
  readonly graph: CurrentGraph
  readonly foreign: ForeignDispatch
  readonly #options: OrchestratorOptions
  readonly #dispatch: LocalDispatch
  #loop: Loop | undefined
  #publisher: Publisher | undefined
  #reopening: Promise<void> | undefined
  #reopens = 0
  #cancelSweep: (() => void) | undefined
  #sweptWith: ProjectManifest['timing'] = {}
  #stopped = false

  private constructor(options: OrchestratorOptions) {
    this.#options = options
    this.graph = new CurrentGraph(
      () => this.loop.compactor.state,
      () => options.clock.now(),
    )
    const { store, scope, clock, instance, workers } = options
    const state = {
      clock,
      rows: () => this.loop.compactor.state,
      submit: (events: readonly NewEvent[]) => this.submit(events),
      envelopeFor: (task: Readonly<TaskRow>, dispatch: Readonly<Row<typeof dispatchOutbox>>) => {
        const { compactor } = this.loop
        return envelopeFor(
          {
            rows: compactor.state,
            partitions: () => this.graph.partitions(),
            lookup: (table, keys) => compactor.lookupAll(table, keys),
          },
          task,
          dispatch,
        )
      },
    }
    this.logs = new AttemptLogs({ store, paths: new Paths(scope), clock, onError: (error) => options.onTrouble?.(error) })
    this.#dispatch = new LocalDispatch({
      ...state,
      durable: () => this.loop.durable(),
      workers,
      instance,
      logs: this.logs,
      cancelGraceMs: () => this.#timing.cancel_grace_ms ?? CANCEL_GRACE_MS,
    })
    this.foreign = new ForeignDispatch({
      ...state,
      ...options.foreign,
      isSealed: async (runId) => (await this.loop.compactor.lookup(historyIndex, runs.name, runId)) !== undefined,
      onTrouble: (error) => options.onTrouble?.(error),
    })
  }

  static async open(options: OrchestratorOptions): Promise<Orchestrator> {
    const orchestrator = new Orchestrator(options)
    await orchestrator.#open()
    return orchestrator
  }

  get loop(): Loop {
    if (this.#loop === undefined) throw new Error('the orchestrator is not open')
    return this.#loop
  }

  /** Attempts that workers have now. */
  get running(): number {
    return this.#dispatch.size
  }

  /** Writes facts. Tried again on a new loop if the old one broke: every fact has a key that makes it the same fact. */
  async submit(events: readonly NewEvent[]): Promise<Submitted> {
    for (;;) {
      const { loop } = this
      try {
        return await loop.submit(events)
      } catch (error) {
        if (this.#stopped || !isServoError(error, 'unavailable') || this.#reopening === undefined) throw error
        await this.#reopening
      }
    }
  }

  /** Resolves when no run is unfinished. */
  async idle(): Promise<void> {
    while (this.#hasWork()) await this.#options.clock.sleep(100)
    await this.loop.settled()
  }

  /** Writes the tables now, for readers that read only them. */
  async publish(): Promise<void> {
    await this.#publisher?.flush()
  }

  /** What `settings` or `concurrency` gives has changed: whatever waited for room, or for a time to pass, is looked at again. */
  settingsChanged(): void {
    if (this.#stopped) return
    // Controllers that wait for a time to pass have counted it from the rows: they are shown them again. Others need only be asked.
    if (isDeepStrictEqual(this.#timing, this.#sweptWith)) this.#loop?.nudge()
    else this.#loop?.sweep()
    this.#scheduleSweep()
  }

  /** Stops: nothing begins any more, what was submitted is durable. Workers are ended by whoever owns them. */
  async close(): Promise<void> {
    this.#stopped = true
    this.#cancelSweep?.()
    this.#dispatch.close()
    this.foreign.close()
    await this.#reopening?.catch(() => undefined)
    await this.#loop?.settled()
    // Not needed, but the next start and whoever reads the tables meanwhile are spared the tail of the ledger.
    const enough = new Promise<void>((resolve) => this.#options.clock.after(MAX_LAST_PUBLISH_MS, resolve))
    await Promise.race([this.#publisher?.flush(), enough])
    this.#publisher?.stop()
    await this.#loop?.close()
    await this.logs.close()
  }

  async #open(): Promise<void> {
    const { store, scope, clock, ulid, instance, compaction } = this.#options
    const loop = await Loop.open({
      store,
      scope,
      clock,
      ulid,
      registry: orchestration,
      name: instance,
      source: 'servo/orchestrator',
      controllers: controllersOf({
        instance,
        limits: () => this.#limits(),
        cancelGraceMs: () => this.#timing.cancel_grace_ms ?? CANCEL_GRACE_MS,
        stuckDispatchMs: () => this.#timing.stuck_dispatch_ms ?? STUCK_DISPATCH_MS,
        lastSign: (attemptId) => this.foreign.lastSign(attemptId),
      }),
      reactors: [this.graph.reactor, ...this.#dispatch.reactors, ...this.foreign.reactors, ...(this.#options.reactors ?? [])],
      onBroken: (error) => this.#reopen(error),
      onDurable: () => this.#publisher?.noticed(),
      ...compaction,
    })
    this.#publisher = new Publisher({
      compactor: loop.compactor,
      clock,
      collect: () => collectGarbage({ store, scope, registry: orchestration, clock }),
      onError: (error) => this.#publishFailed(error),
      ...(this.#options.publishDelayMs !== undefined && { delayMs: this.#options.publishDelayMs }),
    })
    this.#loop = loop
    loop.sweep()
    this.#publisher.noticed()
    this.#scheduleSweep()
  }

  #scheduleSweep(): void {
    this.#sweptWith = this.#timing
    this.#cancelSweep?.()
    this.#cancelSweep = this.#options.clock.after(this.#timing.sweep_ms ?? SWEEP_MS, () => {
      if (this.#stopped) return
      // Nothing unfinished, nothing to repair: an idle process stays idle.
      if (this.#hasWork()) this.#loop?.sweep()
      this.#scheduleSweep()
    })
  }

  get #timing(): ProjectManifest['timing'] {
    return this.#options.settings?.().timing ?? {}
  }

  #limits(): Limits {
    const { concurrency: total, queues = {} } = this.#options.settings?.() ?? {}
    const local = this.#options.concurrency()
    return { total: total ?? undefined, local, ahead: this.#dispatch.ahead(local), queues }
  }

  #hasWork(): boolean {
    for (const { state } of this.loop.compactor.state.hot(runs).all()) if (!isRunOver(state)) return true
    return false
  }

  #publishFailed(error: unknown): void {
    if (this.#stopped) return
    if (isServoError(error, 'conflict')) this.#stop(error)
    else this.#options.onTrouble?.(error)
  }

  #reopen(error: unknown): void {
    if (this.#stopped) return
    if (!isServoError(error, 'unavailable') || this.#reopens >= MAX_REOPENS) {
      this.#stop(error)
      return
    }
    this.#reopens += 1
    this.#options.onTrouble?.(error)
    this.#reopening = this.#openAgain().finally(() => {
      this.#reopening = undefined
    })
  }

  async #openAgain(): Promise<void> {
    const { clock } = this.#options
    try {
      await this.#publisher?.close()
      await clock.sleep(100 * 2 ** this.#reopens)
      await this.#open()
      this.#reopens = 0
    } catch (error) {
      this.#stop(error)
    }
  }

  #stop(error: unknown): void {
    if (this.#stopped) return
    this.#stopped = true
    this.#dispatch.close()
    this.foreign.close()
    this.#options.onStopped?.(error)
  }
}
