import type { AttemptResult, DispatchEnvelope } from '../../contract/dispatch.ts'
import type { FromWorker } from '../../contract/pipe.ts'
import { ServoError } from '../../lib/error.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'
import { cancelledResult, LEFT_IDLE } from '../attempt-results.ts'
import { type Ending, explainFailedStart, resultOfEnding } from './ending.ts'
import { Generation, type Loaded, type LoadFailed } from './generation.ts'
import { HeldUpAttempts } from './held-up.ts'
import { Job, type JobOptions } from './job.ts'
import type { LocalWorker, WorkerCommand } from './local-worker.ts'
import { Pace } from './pace.ts'
import { reportedResult } from './reported-result.ts'
import { placeIn, shortQueues } from './short-queue.ts'

export type { JobOptions, Loaded, LoadFailed, WorkerCommand }

export interface WorkerPoolOptions {
  readonly command: WorkerCommand
  /** How many attempts run at a time, each in a process of its own. */
  readonly size: number
  /** Processes that stay although there is nothing to do. A process starts in some 100 ms. */
  readonly warm?: number
  /** How long an attempt that is asked to stop may take before it is killed, unless the caller sets another time. */
  readonly graceMs?: number
  /** A process is replaced after this many attempts, so that leaks of user code stay small. */
  readonly maxAttempts?: number
  /** … or when it holds more memory than this after an attempt. */
  readonly maxResidentBytes?: number
  readonly now: () => number
  /** Called for the first process in a row that cannot be started; others are tried for as long as there is work for them. */
  readonly onTrouble?: (error: ServoError) => void
}

type Completed = Extract<FromWorker, { type: 'completed' }>

/** To read the memory of a process costs as much as a tiny attempt, so it is done after each long one, and now and then. */
const LONG_ATTEMPT_MS = 20
const MEMORY_CHECK_EVERY = 64

/**
 * Output that is printed past `console` may arrive after the attempt has ended. Attempts that print so count as this long: then
 * nothing follows them at once, and late output still belongs to them.
 */
const PRINTING_MS = 1_000

type PoolState = 'open' | 'closing' | 'closed'

/** Where each state may lead. */
const transitions: Transitions<PoolState> = {
  open: ['closing'],
  closing: ['closed'],
  closed: [],
}

/**
 * Runs attempts in processes of their own, so that user code can harm only its own attempt.
 *
 * Its states:
 * - `open`: attempts are taken and handed out.
 * - `closing`: every attempt is cancelled, and processes end.
 * - `closed`: no process is left.
 */
export class WorkerPool {
  readonly #options: Required<WorkerPoolOptions>
  /** Every attempt that has not ended. */
  readonly #jobs = new Map<string, Job>()
  /** Those of them that no process has yet, in order. */
  readonly #waiting = new Map<string, Job>()
  /** Every process that has not ended, with the code it runs. */
  readonly #processes = new Map<LocalWorker, Generation>()
  readonly #heldUp = new HeldUpAttempts(() => this.#processes.keys())
  readonly #pace = new Pace()
  readonly #closed = Promise.withResolvers<void>()
  #state: PoolState = 'open'
  #size: number
  /** The code that attempts go to. */
  #generation: Generation
  /** Newer code that is being loaded. */
  #coming: Generation | undefined

  constructor(options: WorkerPoolOptions) {
    const warm = Math.min(options.warm ?? 2, options.size)
    const defaults = { graceMs: 5_000, maxAttempts: 100_000, maxResidentBytes: 2 ** 30, onTrouble: () => undefined }
    this.#options = { ...defaults, ...options, warm }
    this.#size = options.size
    this.#generation = new Generation(options.command)
    for (let i = 0; i < Math.max(warm, 1); i++) this.#spawn(this.#generation)
  }

  /** How loading the project went. */
  ready(): Promise<Loaded | LoadFailed> {
    return this.#generation.firstLoad
  }

  /** Changes how many attempts run at a time. Attempts that run go on. */
  resize(size: number): void {
    this.#size = size
    this.#handOut()
  }

  /** How many more attempts could begin now. */
  get idle(): number {
    return Math.max(0, this.#size - this.#jobs.size)
  }

  /** Runs an attempt as soon as a process is free. Never rejects: whatever happens to the process is a result. */
  run(envelope: DispatchEnvelope, options: JobOptions = {}): Promise<AttemptResult> {
    const known = this.#jobs.get(envelope.attempt_id)
    if (known !== undefined) return known.result
    if (this.#state !== 'open') return Promise.resolve(cancelledResult())
    const job = new Job(envelope, options, this.#options)
    this.#jobs.set(job.id, job)
    this.#waiting.set(job.id, job)
    this.#handOut()
    return job.result
  }

  /** Asks an attempt to stop, and kills its process after the grace. False when there is no such attempt. */
  cancel(attemptId: string, options: { readonly graceMs?: number; readonly reason?: string } = {}): boolean {
    const job = this.#jobs.get(attemptId)
    if (job === undefined) return false
    if (this.#waiting.has(attemptId)) this.#finish(job, cancelledResult(), true)
    else job.cancel(options.reason ?? 'it was cancelled', options.graceMs ?? this.#options.graceMs)
    return true
  }

  /**
   * Goes over to other code. Attempts that are running finish where they are; new ones go to the new code as soon as it has
   * loaded. If it cannot be loaded, the old code stays.
   */
  async replace(command: WorkerCommand): Promise<Loaded | LoadFailed> {
    if (this.#state !== 'open') return this.ready()
    this.#coming?.dismiss()
    const next = new Generation(command)
    this.#coming = next
    this.#spawn(next)
    const loaded = await next.firstLoad
    if (this.#coming !== next) return loaded
    this.#coming = undefined
    const before = this.#generation
    if (loaded.type === 'load_failed' && !before.isBroken) return loaded
    this.#generation = next
    before.dismiss()
    this.#handOut()
    return loaded
  }

  /** Ends all attempts and all processes. Nothing is left behind when it resolves. */
  close(options: { readonly graceMs?: number } = {}): Promise<void> {
    if (this.#state === 'open') this.#enter('closing')
    this.#heldUp.end()
    this.#generation.dismiss()
    this.#coming?.dismiss()
    for (const job of this.#waiting.values()) this.#finish(job, cancelledResult(), true)
    for (const worker of this.#processes.keys()) {
      worker.leave()
      for (const job of worker.jobs) job.cancel('the orchestrator is stopping', options.graceMs ?? this.#options.graceMs)
    }
    this.#closedWhenEmpty()
    return this.#closed.promise
  }

  #enter(next: PoolState): void {
    this.#state = transition('a pool', transitions, this.#state, next)
  }

  #closedWhenEmpty(): void {
    if (this.#state !== 'closing' || this.#processes.size > 0) return
    this.#enter('closed')
    this.#closed.resolve()
  }

  /** Returns false while it is of no use to try. */
  #spawn(generation: Generation): boolean {
    const worker = generation.spawn(
      {
        received: (from, message) => this.#receive(from, generation, message),
        gone: (from, ending) => this.#gone(from, generation, ending),
      },
      () => this.#tryAgain(generation),
    )
    if (worker !== undefined) this.#processes.set(worker, generation)
    return worker !== undefined
  }

  /** A process could not be started a while ago. */
  #tryAgain(generation: Generation): void {
    if (generation.isUnknown && generation.workers.size === 0) this.#spawn(generation)
    this.#handOut()
  }

  #handOut(): void {
    if (this.#state !== 'open') return
    const generation = this.#generation
    const { workers } = generation
    let queues: LocalWorker[] | undefined
    for (const [id, job] of this.#waiting) {
      const expectedMs = this.#pace.expectedMs(job.envelope.asset_key)
      let worker = generation.take(expectedMs)
      if (worker === undefined) {
        queues ??= shortQueues(workers)
        worker = placeIn(queues, expectedMs)
      }
      if (worker === undefined) break
      if (worker.job !== undefined) this.#heldUp.lookLater()
      this.#waiting.delete(id)
      generation.give(worker, job, expectedMs)
    }
    while (workers.size < this.#size && this.#notBegun() > generation.starting) if (!this.#spawn(generation)) break
  }

  /** How many attempts wait, here or in a process. */
  #notBegun(): number {
    let running = 0
    for (const { job } of this.#processes.keys()) if (job !== undefined) running++
    return this.#jobs.size - running
  }

  /** Attempts that were given to a process and never began are the next to go elsewhere. */
  #takeBack(jobs: readonly Job[]): void {
    if (jobs.length === 0) return
    const unwanted = jobs.filter(({ isCancelled }) => isCancelled)
    const others = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const job of jobs) job.takeBack()
    for (const job of [...jobs, ...others]) this.#waiting.set(job.id, job)
    for (const job of unwanted) this.#finish(job, cancelledResult(), true)
  }

  #receive(worker: LocalWorker, generation: Generation, message: FromWorker): void {
    switch (message.type) {
      case 'completed':
        this.#completed(worker, generation, message)
        break
      case 'returned':
        this.#takeBack(worker.returned(new Set(message.attempt_ids)))
        this.#handOut()
        break
      case 'log':
        if (worker.job?.id === message.attempt_id) worker.job.log(message.entries)
        break
      default:
        // User code can write to the pipe too. A second report about loading is ignored.
        if (generation.isStarting(worker)) this.#loadReported(worker, generation, message)
    }
  }

  #loadReported(worker: LocalWorker, generation: Generation, message: Loaded | LoadFailed): void {
    if (message.type === 'loaded') {
      generation.loaded(worker, message)
      this.#free(worker, generation)
    } else {
      generation.loadFailed(worker, message)
      worker.kill()
    }
  }

  #completed(worker: LocalWorker, generation: Generation, message: Completed): void {
    const job = worker.jobs.find(({ id }) => id === message.attempt_id)
    if (job === undefined) return
    worker.ended(job)
    this.#pace.ended(job.envelope.asset_key, job.hasPrinted ? PRINTING_MS : message.took_ms)
    this.#finish(job, reportedResult(message.result), true)
    if (this.#isWorn(worker, message.took_ms)) worker.leave()
    if (worker.job === undefined) this.#free(worker, generation)
    else if (this.#waiting.size > 0) this.#handOut()
  }

  #isWorn(worker: LocalWorker, tookMs: number): boolean {
    const { maxAttempts, maxResidentBytes } = this.#options
    if (worker.served >= maxAttempts) return true
    if (worker.served % MEMORY_CHECK_EVERY !== 0 && tookMs < LONG_ATTEMPT_MS) return false
    return worker.residentBytes() > maxResidentBytes
  }

  #free(worker: LocalWorker, generation: Generation): void {
    if (worker.takesWork) {
      generation.rest(worker)
      if (this.#waiting.size === 0) generation.shrinkLater(this.#options.warm)
    } else {
      generation.remove(worker)
      worker.kill()
    }
    if (this.#waiting.size > 0) this.#handOut()
  }

  #gone(worker: LocalWorker, generation: Generation, ending: Ending): void {
    this.#processes.delete(worker)
    const again = generation.gone(worker, ending) && (generation === this.#generation || generation === this.#coming)
    const [first, ...behind] = worker.takeJobs()
    if (first !== undefined) {
      const hasBegun = ending.code !== LEFT_IDLE || this.#state !== 'open' || !first.mayMove
      if (hasBegun) this.#finish(first, resultOfEnding(ending), false)
      this.#takeBack(hasBegun ? behind : [first, ...behind])
    }
    if (this.#state !== 'open') {
      this.#closedWhenEmpty()
      return
    }
    if (ending.spawnError !== undefined && generation.hasJustFailed) this.#reportTrouble(ending.spawnError)
    if (again) this.#spawn(generation)
    const { failure, workers } = this.#generation
    if (failure !== undefined) for (const job of this.#waiting.values()) this.#finish(job, failure, true)
    // Only after a process that was of use: code that ends its process whenever it is loaded must not make us spawn for ever.
    if (generation === this.#generation && worker.served > 0 && workers.size < this.#options.warm) this.#spawn(generation)
    this.#handOut()
  }

  #reportTrouble(spawnError: Error): void {
    const { message, hint } = explainFailedStart(spawnError)
    this.#options.onTrouble(new ServoError('unavailable', 'no_worker', message, { hint, cause: spawnError }))
  }

  #finish(job: Job, result: AttemptResult, reported: boolean): void {
    this.#jobs.delete(job.id)
    this.#waiting.delete(job.id)
    job.finish(result, reported)
  }
}
