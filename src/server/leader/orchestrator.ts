import type { DispatchRow } from '../../domain/dispatch/dispatch-outbox.table.ts'
import type { Limits } from '../../domain/dispatch/room.ts'
import { orchestration } from '../../domain/index.ts'
import { runs } from '../../domain/runs/runs.table.ts'
import type { TaskRow } from '../../domain/tasks/tasks.table.ts'
import { leads, lostLead } from '../../engine/ledger/leading.ts'
import { Loop, type Submitted } from '../../engine/loop/loop.ts'
import { Paths } from '../../engine/paths.ts'
import { Publisher } from '../../engine/publish/publisher.ts'
import { isServoError } from '../../lib/error.ts'
import { SECOND_MS } from '../../lib/time.ts'
import type { NewEvent } from '../../model/event.ts'
import { historyIndex } from '../../model/system-tables.ts'
import { CarriedRuns } from './carried-runs.ts'
import { controllersOf } from './controllers.ts'
import { CurrentGraph } from './current-graph.ts'
import { damageFound } from './damage-found.ts'
import { envelopeFor, knownState } from './dispatch/inputs.ts'
import { LocalDispatch } from './dispatch/local-dispatch.ts'
import { RemoteDispatch } from './dispatch/remote-dispatch.ts'
import { durableState, type Readable } from './durable-state.ts'
import { AttemptLogs } from './logs.ts'
import type { OrchestratorOptions } from './orchestrator-options.ts'
import { patiently } from './patience.ts'
import { nextPhase, type Phase, slowStorage, unavailableIn } from './phase.ts'
import { type LeaderTiming, timingOf } from './settings.ts'
import { Sweeps } from './sweeps.ts'
import { upkeepOf } from './upkeep.ts'

/** A publish takes some 50 ms, on a busy machine ten times that. Longer than this, whatever stops a server should not wait for its end. */
const MAX_LAST_PUBLISH_MS = 2_000
/** A store that cannot be written is tried again this often, at most. */
const MAX_RECOVERY_PAUSE_MS = 5 * SECOND_MS

/** The process that folds and decides: the loop, its controllers, the workers of this machine, and publishing behind it all. */
export class Orchestrator {
  readonly logs: AttemptLogs
  /** The assets on record. */
  readonly graph: CurrentGraph
  readonly remote: RemoteDispatch
  readonly #options: OrchestratorOptions
  readonly #dispatch: LocalDispatch
  #phase: Phase = 'opening'
  #loop: Loop | undefined
  #publisher: Publisher | undefined
  #recovery: Promise<void> | undefined
  /** The durable state, while recovering: nothing is added to it in the meantime. */
  #durable: Readable | undefined
  readonly #sweeps: Sweeps
  readonly #carried: CarriedRuns
  #isProjectKnown = false
  #brokenBy: unknown

  private constructor(options: OrchestratorOptions) {
    this.#options = options
    this.#carried = new CarriedRuns(options.carries ?? 'everything')
    const { components, lease, instance, workers } = options
    const { store, scope, clock } = components
    const rows = () => this.loop.compactor.state
    this.graph = new CurrentGraph(rows, () => clock.now())
    const state = {
      clock,
      carries: (runId: string) => this.#carried.has(runId),
      rows,
      envelopeFor: (task: Readonly<TaskRow>, dispatch: Readonly<DispatchRow>) =>
        envelopeFor(knownState(this.loop.compactor, this.graph, options.isSampled), task, dispatch),
    }
    this.logs = new AttemptLogs({ store, paths: new Paths(scope), clock, onError: (error) => options.onTrouble?.(error) })
    this.#dispatch = new LocalDispatch({
      ...state,
      submit: (events) => this.#submitPatiently(events),
      durable: () => this.loop.durable(),
      leads: () => leads(lease),
      workers,
      instance,
      logs: this.logs,
      cancelGraceMs: () => this.#timing.cancelGraceMs,
    })
    this.remote = new RemoteDispatch({
      ...state,
      queue: components.queue,
      ...options.remote,
      submit: (events) => this.submit(events),
      leads: () => leads(lease),
      isSealed: async (runId) => (await this.loop.compactor.lookup(historyIndex, runs.name, runId)) !== undefined,
      onTrouble: (error) => options.onTrouble?.(error),
    })
    this.#sweeps = new Sweeps({ clock, timing: () => this.#timing, sweep: () => this.#sweep() })
    lease.onLost(() => this.#stop(lostLead(lease)))
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

  get phase(): Phase {
    return this.#phase
  }

  /** The state for questions: memory, or the durable state while memory may hold facts that were never written. */
  get readable(): Readable {
    if (this.#phase === 'leading') return this.loop.compactor
    if (this.#phase !== 'recovering' || this.#durable === undefined) throw unavailableIn(this.#phase, this.#brokenBy)
    return this.#durable
  }

  /** Resolves when all that is in memory now is in the ledger. Fails when it cannot be written. */
  async durable(): Promise<void> {
    if (this.#phase !== 'leading') return
    this.loop.closeSegment()
    await this.#inTime(this.loop.durable())
  }

  /** Attempts that workers have now. */
  get running(): number {
    return this.#dispatch.size
  }

  /**
   * Writes facts, and tries again on a new loop if the old one broke: its key makes every repetition the same fact. Refuses as
   * unavailable when nothing could be written for too long.
   */
  async submit(events: readonly NewEvent[]): Promise<Submitted> {
    const isKnown = this.#carried.addRequested(events)
    const submitted = await this.#inTime(this.#submitPatiently(events))
    if (isKnown(submitted.verdicts)) this.loop.sweep()
    return submitted
  }

  async #inTime<T>(work: Promise<T>): Promise<T> {
    return await patiently(work, {
      clock: this.#options.components.clock,
      progress: () => this.#loop?.durableSegments() ?? 0,
      atStandstill: () => {
        if (this.#phase !== 'leading' || this.#options.carries !== 'what it is asked for')
          return unavailableIn(this.#phase, this.#brokenBy)
        // Nobody else does what this command was started for, so it waits for the store.
        this.#options.onTrouble?.(slowStorage('The command waits, and continues when the storage answers. Check the disk.'))
        return undefined
      },
    })
  }

  /** Like `submit`, but without a time limit, for callers that cannot report a failure. */
  async #submitPatiently(events: readonly NewEvent[]): Promise<Submitted> {
    for (;;) {
      if (this.#phase === 'stopped') throw unavailableIn(this.#phase, this.#brokenBy)
      try {
        return await this.loop.submit(events)
      } catch (error) {
        if (!isServoError(error, 'unavailable') || this.#recovery === undefined) throw error
        await this.#recovery
      }
    }
  }

  /** Call when the project is loaded and on record: from now on its schedules tick. */
  projectKnown(): void {
    this.#isProjectKnown = true
    if (this.#phase === 'leading') this.loop.nudge()
  }

  /** Carries this run too, which may have been requested before this process led. */
  carry(runId: string): void {
    this.#carried.add(runId)
    if (this.#phase === 'leading') this.loop.sweep()
  }

  /** The runs that have not ended: the ones carried here, and the ones that wait for a server. */
  unfinished(): { carried: string[]; others: string[] } {
    return this.#carried.unfinished(this.loop.compactor.state)
  }

  /** Resolves when no run that is carried here is unfinished. */
  async idle(): Promise<void> {
    while (this.#phase !== 'stopped' && this.#hasWork()) await this.#options.components.clock.sleep(100)
    await this.loop.idle()
  }

  /** Begins no further attempt, and waits for the running ones, and for other work, until the grace is over. */
  async drain(graceMs: number, others: () => number = () => 0): Promise<void> {
    this.#dispatch.drain()
    const { clock } = this.#options.components
    const until = clock.monotonic() + graceMs
    for (;;) {
      // Attempts that were decided before begin once they are durable, and count from then on.
      await this.loop.idle()
      if (this.running + others() === 0 || clock.monotonic() >= until) return
      await clock.sleep(20)
    }
  }

  /** Writes the tables now, for readers that read only them. */
  async publish(): Promise<void> {
    await this.#publisher?.flush()
  }

  /** Call when `settings` or `concurrency` has changed: tasks that wait for room or for a time are looked at again. */
  settingsChanged(): void {
    if (this.#phase !== 'leading') return
    // Controllers that wait for a time have computed it from the rows, so they are shown all rows again. The others only decide again.
    if (this.#sweeps.isOutdated) this.loop.sweep()
    else this.loop.nudge()
    this.#sweeps.schedule()
  }

  /** Stops: nothing begins any more, what was submitted is durable. The owner of the workers ends them. */
  async close(): Promise<void> {
    const wasLeading = this.#phase === 'leading'
    this.#end()
    await this.#recovery
    if (wasLeading) {
      await this.#loop?.idle()
      // Not needed, but it spares the next start and readers of the tables the tail of the ledger.
      const enough = new Promise<void>((resolve) => this.#options.components.clock.after(MAX_LAST_PUBLISH_MS, resolve))
      await Promise.race([this.#publisher?.flush(), enough])
    }
    this.#publisher?.stop()
    await this.#loop?.close()
    await this.logs.close()
    await this.#options.components.settle?.()
  }

  async #open(): Promise<void> {
    const { components, lease, instance, compaction, requestRun, automation, conditions } = this.#options
    const mayDecide = () => this.#isProjectKnown && this.#dispatch.isOpen
    const loop = await Loop.open({
      ...components,
      registry: orchestration,
      name: instance,
      lease,
      source: 'servo/orchestrator',
      controllers: controllersOf({
        instance,
        limits: () => this.#limits(),
        cancelGraceMs: () => this.#timing.cancelGraceMs,
        stuckDispatchMs: () => this.#timing.stuckDispatchMs,
        lastSign: (attemptId) => this.remote.lastSign(attemptId),
        carries: (runId) => this.#carried.has(runId),
        alerts: this.#options.alerts,
        automation: automation && requestRun ? { requestRun, mayDecide, conditions } : undefined,
        backfills: requestRun && { requestRun, mayDecide, automation: automation ?? false },
      }),
      reactors: [this.graph.reactor, ...this.#dispatch.reactors, ...this.remote.reactors, ...(this.#options.reactors ?? [])],
      onBroken: (error) => this.#broke(error),
      onDurable: (canWait) => this.#publisher?.noticed(canWait),
      onTrouble: (error) => this.#options.onTrouble?.(error),
      onFound: (damage) => this.#options.onTrouble?.(damageFound(damage)),
      ...this.#options.measure,
      ...compaction,
    })
    // The orchestrator was closed while the loop opened.
    if (this.#phase === 'stopped') return await loop.close()
    this.#publisher = new Publisher({
      compactor: loop.compactor,
      clock: components.clock,
      ...upkeepOf(components, loop, lease),
      onError: (error) => this.#publishFailed(error),
      onQuiet: this.#options.components.rest,
      ...this.#options.measure,
      ...(this.#options.publishDelayMs !== undefined && { delayMs: this.#options.publishDelayMs }),
    })
    this.#loop = loop
    this.#options.onOpened?.(loop.compactor)
    this.#enter('leading')
    loop.sweep()
    this.#publisher.noticed()
    this.#sweeps.schedule()
  }

  /** Shows every row again if a run is unfinished. Otherwise there is nothing to repair, and an idle process stays idle. */
  #sweep(): void {
    if (this.#phase === 'leading' && this.#hasWork()) this.#loop?.sweep()
  }

  get #timing(): LeaderTiming {
    return timingOf(this.#options.settings?.() ?? {})
  }

  #limits(): Limits {
    const { concurrency: total, queues = {} } = this.#options.settings?.() ?? {}
    return { total: total ?? undefined, ...this.#dispatch.room(this.#options.concurrency()), queues }
  }

  #hasWork(): boolean {
    return this.#carried.hasUnfinished(this.loop.compactor.state)
  }

  #publishFailed(error: unknown): void {
    if (this.#phase === 'stopped') return
    if (isServoError(error, 'conflict')) this.#stop(error)
    else this.#options.onTrouble?.(error)
  }

  /** The loop is broken. This process recovers, or stops if it was deposed or the state is damaged. */
  #broke(error: unknown): void {
    if (this.#phase !== 'leading') return
    if (!isServoError(error, 'unavailable')) {
      this.#stop(error)
      return
    }
    this.#enter('recovering')
    this.#brokenBy = error
    this.#options.onTrouble?.(error)
    this.#recovery = this.#recover().finally(() => {
      this.#recovery = undefined
    })
  }

  async #recover(): Promise<void> {
    this.#durable = undefined
    await this.#publisher?.close()
    this.#durable = await durableState(this.#options.components).catch(() => undefined)
    for (let attempt = 1; this.#phase === 'recovering'; attempt++) {
      await this.#options.components.clock.sleep(Math.min(MAX_RECOVERY_PAUSE_MS, 100 * 2 ** attempt))
      if (this.#phase !== 'recovering') return
      try {
        await this.#open()
      } catch (error) {
        if (!isServoError(error, 'unavailable')) this.#stop(error)
      }
    }
  }

  #stop(error: unknown): void {
    if (this.#phase === 'stopped') return
    this.#end()
    this.#publisher?.stop()
    this.#options.onStopped?.(error)
  }

  #end(): void {
    if (this.#phase !== 'stopped') this.#enter('stopped')
    this.#sweeps.stop()
    this.#dispatch.close()
    this.remote.close()
  }

  #enter(next: Phase): void {
    this.#phase = nextPhase(this.#phase, next)
  }
}
