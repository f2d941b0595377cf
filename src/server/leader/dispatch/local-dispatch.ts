import type { AttemptResultInput, DispatchEnvelope } from '../../../contract/dispatch.ts'
import { type DispatchRow, dispatchOutbox } from '../../../domain/dispatch/dispatch-outbox.table.ts'
import { LOCAL_QUEUE } from '../../../domain/dispatch/queue.ts'
import type { Limits } from '../../../domain/dispatch/room.ts'
import { aboutRun } from '../../../domain/runs/event-context.ts'
import { isRunOver, runs } from '../../../domain/runs/runs.table.ts'
import { TaskStarted } from '../../../domain/tasks/task-started.event.ts'
import { type TaskRow, tasks } from '../../../domain/tasks/tasks.table.ts'
import { localWorkerId } from '../../../domain/tasks/worker-id.ts'
import type { Reactor } from '../../../engine/loop/loop.ts'
import { isServoError } from '../../../lib/error.ts'
import { SECOND_MS, toIso } from '../../../lib/time.ts'
import { type EventContext, type NewEvent, newEvent } from '../../../model/event.ts'
import type { Rows } from '../../../model/rows.ts'
import type { Row } from '../../../model/table.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import type { AttemptLogs } from '../logs.ts'
import { reactor } from '../reactor.ts'
import { notBegun, notRecorded, taskFinished } from './attempt-end.ts'
import { Lookahead } from './lookahead.ts'
import type { Workers } from './workers.ts'

export interface LocalDispatchOptions {
  readonly workers: Workers
  readonly clock: AlarmClock
  /** Names this process. */
  readonly instance: string
  readonly logs: AttemptLogs
  readonly submit: (events: readonly NewEvent[]) => Promise<unknown>
  /** Resolves when everything that waits to be written now is written. */
  readonly durable: () => Promise<void>
  /** True while this process leads. A deposed process begins no attempt. */
  readonly leads: () => Promise<boolean>
  readonly rows: () => Rows
  /** True if this process begins the tasks of this run. */
  readonly carries: (runId: string) => boolean
  /** The envelope that describes a task and its inputs to a worker. */
  readonly envelopeFor: (task: Readonly<TaskRow>, dispatch: Readonly<DispatchRow>) => Promise<DispatchEnvelope>
  readonly cancelGraceMs: () => number
}

interface Running {
  readonly dispatch: Readonly<DispatchRow>
  /** When a worker took it; undefined while it waits for one. */
  startedAt: number | undefined
  cancelled: boolean
}

/** An attempt that ends sooner than this is recorded once, when it ends: that event also records when it began. */
const REPORT_START_AFTER_MS = 500

/** Retries are spread out, so that callers that wait for a busy ledger do not all return at once. */
const BUSY_MS = 50

/** An open dispatch begins attempts, a draining one has no room for more, and a closed one begins nothing and records nothing. */
type DispatchState = 'open' | 'draining' | 'closed'

/**
 * Hands dispatches to the local workers, and records their results. It keeps nothing that the state does not hold:
 * after a restart the reactor is shown every dispatch again, and begins the ones that no worker began.
 */
export class LocalDispatch {
  readonly #options: LocalDispatchOptions
  readonly #running = new Map<string, Running>()
  /** Attempts that have ended, and whose end is not on record yet. */
  readonly #ended = new Set<string>()
  #unreported: Running[] = []
  readonly #lookahead = new Lookahead()
  #state: DispatchState = 'open'

  constructor(options: LocalDispatchOptions) {
    this.#options = options
  }

  get reactors(): readonly Reactor[] {
    return [reactor(dispatchOutbox, (dispatch) => this.#dispatch(dispatch)), reactor(runs, (run) => this.#cancelRun(run))]
  }

  /** Attempts that workers have now. */
  get size(): number {
    return this.#running.size
  }

  /** True until this process begins to leave. */
  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** The room that this many local workers offer to the dispatch controller. */
  room(workers: number): Pick<Limits, 'local' | 'ahead'> {
    return this.#state === 'open' ? { local: workers, ahead: this.#lookahead.for(workers) } : { local: 0, ahead: 0 }
  }

  /** Offers no room any more. Attempts that were dispatched before still begin. */
  drain(): void {
    if (this.#state === 'open') this.#state = 'draining'
  }

  /** Begins nothing any more. Running attempts end with their workers, and are found lost after a restart. */
  close(): void {
    this.#state = 'closed'
  }

  get #isClosed(): boolean {
    return this.#state === 'closed'
  }

  #dispatch(dispatch: Readonly<DispatchRow>): void {
    if (dispatch.worker_queue !== LOCAL_QUEUE) return
    if (!this.#options.carries(dispatch.run_id) && !this.#isCancelled(dispatch.run_id)) return
    const { attempt_id, status } = dispatch
    if (this.#isClosed || status === 'ACKED' || this.#running.has(attempt_id) || this.#ended.has(attempt_id)) return
    const task = this.#options.rows().hot(tasks).get(dispatch.run_id, dispatch.task_key)
    if (task === undefined || task.state !== 'DISPATCHED' || task.attempt !== dispatch.attempt) return
    const running: Running = { dispatch, startedAt: undefined, cancelled: false }
    this.#running.set(attempt_id, running)
    void this.#run(running, task)
  }

  async #run(running: Running, task: Readonly<TaskRow>): Promise<void> {
    const { dispatch } = running
    const result = await this.#attempt(running, task).catch(notBegun)
    this.#options.logs.end(dispatch.attempt_id)
    this.#running.delete(dispatch.attempt_id)
    if (running.startedAt !== undefined) this.#lookahead.ended(this.#options.clock.now() - running.startedAt)
    // A worker that was ended along with this process does not report on its attempt.
    if (this.#isClosed) return
    const { instance, clock } = this.#options
    const ended = {
      task,
      workerId: localWorkerId(instance),
      startedAt: running.startedAt ?? null,
      now: clock.now(),
      rows: this.#options.rows(),
      context: this.#contextOf(dispatch),
    }
    const report = (what: AttemptResultInput): Promise<unknown> => this.#submit([taskFinished(dispatch, what, ended)])
    this.#ended.add(dispatch.attempt_id)
    try {
      await report(result)
    } catch (error) {
      // A leader that was deposed, or is ending, records nothing more; the next one finds the attempt lost.
      if (isServoError(error, 'invalid'))
        await report(notRecorded(error, task?.asset_key ?? dispatch.task_key, result)).catch(() => undefined)
    }
    this.#ended.delete(dispatch.attempt_id)
  }

  /** Records a result. Only this process has it, so it waits while the ledger is overloaded. */
  async #submit(events: readonly NewEvent[]): Promise<void> {
    const { submit, durable, clock } = this.#options
    for (;;) {
      try {
        await submit(events)
        return
      } catch (error) {
        if (!isServoError(error, 'unavailable') || error.code !== 'ledger_busy' || this.#isClosed) throw error
      }
      // If that fails, the next try fails as well and is handled there.
      await durable().catch(() => undefined)
      await clock.sleep(BUSY_MS)
    }
  }

  async #attempt(running: Running, task: Readonly<TaskRow>): Promise<AttemptResultInput> {
    const { workers, logs, envelopeFor } = this.#options
    if (this.#isCancelled(running.dispatch.run_id)) return { outcome: 'CANCELLED' }
    const envelope = await envelopeFor(task, running.dispatch)
    if (!(await this.#options.leads())) this.close()
    if (running.cancelled || this.#isClosed) return { outcome: 'CANCELLED' }
    return await workers.run(envelope, {
      ...(task.timeout_sec !== null && { timeoutMs: task.timeout_sec * SECOND_MS }),
      onStart: () => this.#started(running),
      onLog: (entries) => logs.add(running.dispatch, entries),
    })
  }

  #isCancelled(runId: string): boolean {
    return this.#options.rows().hot(runs).get(runId)?.cancel_requested_at != null
  }

  #started(running: Running): void {
    running.startedAt = this.#options.clock.now()
    this.#unreported.push(running)
    if (this.#unreported.length === 1) this.#options.clock.after(REPORT_START_AFTER_MS, () => this.#reportStarts())
  }

  #reportStarts(): void {
    const { clock, instance } = this.#options
    const now = clock.now()
    const events: NewEvent[] = []
    const later: Running[] = []
    for (const running of this.#unreported) {
      const { run_id, task_key, attempt, attempt_id } = running.dispatch
      const { startedAt } = running
      if (startedAt === undefined || this.#running.get(attempt_id) !== running) continue
      if (now - startedAt < REPORT_START_AFTER_MS) {
        later.push(running)
        continue
      }
      const start = {
        run_id,
        task_key,
        attempt,
        attempt_id,
        worker_id: localWorkerId(instance),
        started_at: toIso(startedAt),
      }
      events.push(newEvent(TaskStarted, start, this.#contextOf(running.dispatch)))
    }
    this.#unreported = later
    if (later.length > 0) clock.after(REPORT_START_AFTER_MS, () => this.#reportStarts())
    if (events.length > 0 && !this.#isClosed) void this.#submit(events).catch(() => undefined)
  }

  #contextOf({ run_id }: Readonly<DispatchRow>): EventContext {
    return aboutRun(this.#options.rows(), run_id)
  }

  #cancelRun(run: Readonly<Row<typeof runs>>): void {
    if (run.cancel_requested_at === null || isRunOver(run.state)) return
    const graceMs = this.#options.cancelGraceMs()
    for (const running of this.#running.values()) {
      if (running.dispatch.run_id !== run.run_id || running.cancelled) continue
      running.cancelled = true
      this.#options.workers.cancel(running.dispatch.attempt_id, { graceMs, reason: 'the run was cancelled' })
    }
  }
}
