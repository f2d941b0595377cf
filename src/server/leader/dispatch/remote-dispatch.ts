import type { AttemptGrant } from '../../../api/task-tokens.ts'
import type { HeartbeatAnswer, StartAnswer, TaskCallbacks, WorkRequest } from '../../../api/worker-contract.ts'
import type { AttemptResult, AttemptResultInput, DispatchEnvelope } from '../../../contract/dispatch.ts'
import { DispatchEnqueued } from '../../../domain/dispatch/dispatch-enqueued.event.ts'
import { type DispatchRow, dispatchOutbox } from '../../../domain/dispatch/dispatch-outbox.table.ts'
import { LOCAL_QUEUE } from '../../../domain/dispatch/queue.ts'
import { aboutRun } from '../../../domain/runs/event-context.ts'
import { isRunOver, type RunRow, runs } from '../../../domain/runs/runs.table.ts'
import { attemptInFlight } from '../../../domain/tasks/attempt-phase.ts'
import { deadlineOf } from '../../../domain/tasks/deadline.controller.ts'
import { taskAttempts } from '../../../domain/tasks/task-attempts.table.ts'
import { TaskStarted } from '../../../domain/tasks/task-started.event.ts'
import { type TaskRow, tasks } from '../../../domain/tasks/tasks.table.ts'
import type { Reactor, Submitted } from '../../../engine/loop/loop.ts'
import { assert } from '../../../lib/assert.ts'
import { SECOND_MS, toIso } from '../../../lib/time.ts'
import { applied, duplicate, ignored, isVerdict, type NewEvent, newEvent, type Verdict } from '../../../model/event.ts'
import type { Rows } from '../../../model/rows.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import type { QueuedTask, TaskQueue } from '../../../ports/task-queue.ts'
import type { AttemptRef } from '../logs.ts'
import { reactor } from '../reactor.ts'
import { isSameResult, notBegun, type RecordedEnd, taskFinished } from './attempt-end.ts'
import { Heartbeats } from './heartbeats.ts'
import { type Post, Pusher, postJson } from './push.ts'

export interface RemoteDispatchOptions {
  readonly clock: AlarmClock
  readonly submit: (events: readonly NewEvent[]) => Promise<Submitted>
  /** True while this process leads. A deposed process pushes no work. */
  readonly leads: () => Promise<boolean>
  readonly rows: () => Rows
  /** True if this process begins the tasks of this run. */
  readonly carries: (runId: string) => boolean
  readonly envelopeFor: (task: Readonly<TaskRow>, dispatch: Readonly<DispatchRow>) => Promise<DispatchEnvelope>
  /** True if the rows of a run that ended were sealed. */
  readonly isSealed: (runId: string) => Promise<boolean>
  /** How an attempt of such a run ended. */
  readonly history?: (attempt: AttemptRef) => Promise<RecordedEnd | undefined>
  readonly post?: Post
  /** The queue in which work waits for workers that poll. */
  readonly queue: TaskQueue
  readonly onTrouble: (error: unknown) => void
}

/** The addresses at which queues accept work, and how an envelope gets the address for its answers. */
export interface PushAddresses {
  readonly queues: Readonly<Record<string, { readonly push?: string | null | undefined }>>
  readonly address: (envelope: DispatchEnvelope) => DispatchEnvelope
}

/**
 * Hands dispatches to remote workers, and records their reports. Like `LocalDispatch` it keeps nothing that the state does not
 * hold, except the time of the last heartbeat of each attempt, which starts empty with each process.
 */
export class RemoteDispatch implements TaskCallbacks {
  readonly #options: RemoteDispatchOptions
  readonly #queue: TaskQueue
  readonly #heartbeats: Heartbeats
  readonly #pusher: Pusher
  #addresses: PushAddresses | undefined
  #closed = false

  constructor(options: RemoteDispatchOptions) {
    this.#options = options
    this.#queue = options.queue
    this.#heartbeats = new Heartbeats(options)
    this.#pusher = new Pusher({
      clock: options.clock,
      post: options.post ?? postJson,
      deliveryOf: (offer) => this.#deliveryOf(offer),
      acknowledge: (offer, status) => this.#acknowledge(offer, status),
      onTrouble: options.onTrouble,
    })
  }

  get reactors(): readonly Reactor[] {
    return [
      reactor(dispatchOutbox, (dispatch) => this.#offer(dispatch)),
      reactor(runs, (run) => this.#cancelRun(run)),
      reactor(taskAttempts, ({ outcome, attempt_id }) => outcome !== null && this.#heartbeats.forget(attempt_id)),
    ]
  }

  /** Pushes work to these queues from now on. Until then all work waits for workers that poll. */
  pushTo(addresses: PushAddresses): void {
    this.#addresses = addresses
    for (const dispatch of this.#options.rows().hot(dispatchOutbox).all()) this.#offer(dispatch)
  }

  /** Hands out nothing any more. Workers continue their attempts, and find the next leader. */
  close(): void {
    this.#closed = true
  }

  /** When this process last received a heartbeat of an attempt, or began to listen. */
  lastSign(attemptId: string): number {
    return this.#heartbeats.lastSign(attemptId)
  }

  async takeWork({ queues, capacity }: WorkRequest): Promise<readonly DispatchEnvelope[]> {
    while (!this.#closed) {
      const taken = await this.#queue.take(queues, capacity)
      if (taken.length === 0) break
      const open = taken.filter((offer) => this.#isOpen(offer) || this.#drop(offer))
      const envelopes = await Promise.all(open.map((offer) => this.#envelopeOf(offer)))
      const work = envelopes.filter((envelope) => envelope !== undefined)
      if (work.length > 0) return work
    }
    return []
  }

  onWork(call: () => void): () => void {
    return this.#queue.onWork(call)
  }

  async started(grant: AttemptGrant, { worker_id }: { worker_id: string }, traceparent?: string): Promise<StartAnswer> {
    const { run_id, task_key, attempt, attempt_id } = grant
    const started_at = toIso(this.#options.clock.now())
    const start = { run_id, task_key, attempt, attempt_id, worker_id, started_at }
    const verdict = await this.#submit(newEvent(TaskStarted, start, aboutRun(this.#rows, run_id, traceparent)))
    const owner = this.#rows.hot(taskAttempts).get(run_id, task_key, attempt)?.worker_id ?? null
    return { verdict, worker_id: owner, ...this.#orders(grant) }
  }

  /** Writes nothing: a heartbeat only decides whether the worker goes on. */
  async heartbeat(grant: AttemptGrant, { worker_id }: { worker_id?: string | undefined }): Promise<HeartbeatAnswer> {
    const task = attemptInFlight(this.#rows, grant)
    if (isVerdict(task)) {
      // A run that is not in memory may be unknown or sealed.
      const verdict = task.kind === 'parked' && (await this.#options.isSealed(grant.run_id)) ? ignored('sealed') : task
      return { verdict, should_cancel: verdict.kind === 'ignored' }
    }
    const attempt = this.#rows.hot(taskAttempts).get(grant.run_id, grant.task_key, grant.attempt)
    if (worker_id && attempt?.worker_id && worker_id !== attempt.worker_id) {
      return { verdict: duplicate, should_cancel: true, reason: 'another worker has this attempt' }
    }
    this.#heartbeats.heard(grant, {
      timeoutMs: task.heartbeat_timeout_sec * SECOND_MS,
      writtenAt: Math.max(attempt?.last_heartbeat_at ?? 0, attempt?.started_at ?? 0),
      context: aboutRun(this.#rows, grant.run_id),
    })
    return { verdict: applied, ...this.#orders(grant) }
  }

  async completed(grant: AttemptGrant, result: AttemptResult, traceparent?: string): Promise<Verdict> {
    const { run_id, task_key, attempt } = grant
    const known = this.#rows.hot(taskAttempts).get(run_id, task_key, attempt)
    const { worker_id: workerId = null, started_at: startedAt = null } = known ?? {}
    const task = this.#rows.hot(tasks).get(run_id, task_key)
    const context = aboutRun(this.#rows, run_id, traceparent)
    const ended = taskFinished(grant, result, {
      task,
      workerId,
      startedAt,
      now: this.#options.clock.now(),
      rows: this.#rows,
      context,
    })
    const verdict = await this.#submit(ended)
    if (verdict.kind !== 'ignored') return verdict
    const recorded = this.#rows.hot(taskAttempts).get(run_id, task_key, attempt) ?? (await this.#options.history?.(grant))
    return recorded !== undefined && isSameResult(recorded, result) ? duplicate : verdict
  }

  get #rows(): Rows {
    return this.#options.rows()
  }

  async #submit(event: NewEvent): Promise<Verdict> {
    const [verdict] = (await this.#options.submit([event])).verdicts
    assert(verdict !== undefined, `${event.definition.type} was submitted and not judged`)
    return verdict
  }

  #urlOf(queue: string): string | undefined {
    return this.#addresses !== undefined && Object.hasOwn(this.#addresses.queues, queue)
      ? (this.#addresses.queues[queue]?.push ?? undefined)
      : undefined
  }

  #offer(dispatch: Readonly<DispatchRow>): void {
    const { run_id, task_key, attempt, attempt_id, worker_queue: queue, status } = dispatch
    if (this.#closed || queue === LOCAL_QUEUE) return
    if (!this.#options.carries(run_id) && !this.#isCancelled(run_id)) return
    const pushes = this.#urlOf(queue) !== undefined
    if (status !== 'PENDING' || pushes) this.#inBackground(this.#queue.forget({ queue, attempt_id }))
    const task = this.#rows.hot(tasks).get(run_id, task_key)
    if (status !== 'PENDING' || task?.state !== 'DISPATCHED' || task.attempt !== attempt) return
    const place = { run_id, task_key, attempt, attempt_id, queue, number: dispatch.offer ?? 1 }
    const startWithinMs = task.heartbeat_timeout_sec * SECOND_MS
    const offer: QueuedTask = { ...place, priority: task.priority, since: dispatch.created_at, startWithinMs }
    if (pushes) this.#pusher.push(offer)
    else if (this.#isCancelled(run_id)) this.#inBackground(this.#endUnlessTaken(offer))
    else this.#inBackground(this.#queue.enqueue(offer))
  }

  /** A worker that has taken an attempt ends it itself, for as long as the grace lasts. */
  async #endUnlessTaken(offer: QueuedTask): Promise<void> {
    const isTaken = await this.#queue.has(offer)
    if (!isTaken && !this.#closed && this.#isDispatched(offer)) this.#end(offer, { outcome: 'CANCELLED' })
  }

  /**
   * An attempt that was taken from the queue too late is handed to no worker. If its run was just cancelled the attempt ends here,
   * because the queue no longer has it.
   */
  #drop(offer: QueuedTask): false {
    this.#inBackground(this.#queue.forget(offer))
    if (!this.#closed && this.#isCancelled(offer.run_id) && this.#isDispatched(offer))
      this.#end(offer, { outcome: 'CANCELLED' })
    return false
  }

  /** A queue that cannot be reached is offered everything again by the next sweep. */
  #inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#options.onTrouble(error))
  }

  #isCancelled(runId: string): boolean {
    return this.#rows.hot(runs).get(runId)?.cancel_requested_at != null
  }

  #isOpen(offer: QueuedTask): boolean {
    return !this.#closed && !this.#isCancelled(offer.run_id) && this.#isDispatched(offer)
  }

  #isDispatched({ run_id, task_key, attempt }: QueuedTask): boolean {
    const task = this.#rows.hot(tasks).get(run_id, task_key)
    return task?.state === 'DISPATCHED' && task.attempt === attempt
  }

  /** The envelope for the worker; undefined when the attempt is over, or cannot begin and was recorded as failed. */
  async #envelopeOf(offer: QueuedTask): Promise<DispatchEnvelope | undefined> {
    const { run_id, task_key, attempt } = offer
    const task = this.#rows.hot(tasks).get(run_id, task_key)
    const dispatch = this.#rows.hot(dispatchOutbox).get(run_id, task_key, attempt)
    if (task === undefined || dispatch === undefined || !this.#isOpen(offer)) return undefined
    try {
      return await this.#options.envelopeFor(task, dispatch)
    } catch (error) {
      this.#end(offer, notBegun(error))
      return undefined
    }
  }

  async #deliveryOf(offer: QueuedTask): Promise<{ url: string; envelope: DispatchEnvelope } | undefined> {
    const envelope = await this.#envelopeOf(offer)
    const url = this.#urlOf(offer.queue)
    if (url === undefined || this.#addresses === undefined || envelope === undefined) return undefined
    if (!(await this.#options.leads())) return undefined
    return { url, envelope: this.#addresses.address(envelope) }
  }

  async #acknowledge({ run_id, task_key, attempt, number }: QueuedTask, status: 'CREATED' | 'FAILED'): Promise<void> {
    // If a worker began before the queue answered, its start is the better fact.
    if (this.#closed || this.#rows.hot(dispatchOutbox).get(run_id, task_key, attempt)?.status === 'ACKED') return
    const ack = { run_id, task_key, attempt, status, ...(number > 1 && { offer: number }) }
    await this.#options.submit([newEvent(DispatchEnqueued, ack, aboutRun(this.#rows, run_id))])
  }

  /** Ends the attempts that no worker has at once; a worker learns of it from the answer to its next request. */
  #cancelRun({ run_id, cancel_requested_at, state }: Readonly<RunRow>): void {
    if (this.#closed || cancel_requested_at === null || isRunOver(state)) return
    this.#inBackground(this.#endWaiting(run_id))
  }

  async #endWaiting(runId: string): Promise<void> {
    for (const offer of await this.#queue.withdraw(runId)) this.#end(offer, { outcome: 'CANCELLED' })
  }

  #end(offer: QueuedTask, result: AttemptResultInput): void {
    const event = taskFinished(offer, result, {
      task: undefined,
      workerId: null,
      startedAt: null,
      now: this.#options.clock.now(),
      rows: this.#rows,
      context: aboutRun(this.#rows, offer.run_id),
    })
    this.#options.submit([event]).catch(() => undefined)
  }

  /** True with a reason if the worker must stop. */
  #orders({ run_id, task_key, attempt }: AttemptGrant): { should_cancel: boolean; reason?: string } {
    if (this.#isCancelled(run_id)) return { should_cancel: true, reason: 'the run was cancelled' }
    const task = this.#rows.hot(tasks).get(run_id, task_key)
    const row = this.#rows.hot(taskAttempts).get(run_id, task_key, attempt)
    const deadline = task && row && deadlineOf(task, row)
    if (deadline === undefined || this.#options.clock.now() < deadline) return { should_cancel: false }
    return { should_cancel: true, reason: `the attempt exceeded its timeout of ${task?.timeout_sec} s` }
  }
}
