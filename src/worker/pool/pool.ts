import { z } from 'zod'
import { type AttemptResult, attemptResult, type DispatchEnvelope } from '../../contract/dispatch.ts'
import type { FromWorker } from '../../contract/pipe.ts'
import { ServoError } from '../../lib/error.ts'
import { cancelled, LEFT_IDLE } from '../attempt-results.ts'
import { type Ending, explainFailedStart, resultOfEnding } from './ending.ts'
import { Generation, type Loaded, type LoadFailed } from './generation.ts'
import { Job, type JobOptions } from './job.ts'
import type { LocalWorker, WorkerCommand } from './local-worker.ts'
import { Pace } from './pace.ts'
import { mayJoin, placeIn, shortQueues } from './short-queue.ts'

export type { JobOptions, Loaded, LoadFailed, WorkerCommand }

export interface WorkerPoolOptions {
  readonly command: WorkerCommand
  /** Most attempts at a time, each in a process of its own. */
  readonly size: number
  /** Processes that stay although there is nothing to do. One starts in some 100 ms. */
  readonly warm?: number
  /** How long an attempt that is asked to stop may take before it is killed, unless the caller says otherwise. */
  readonly graceMs?: number
  /** A process makes room for a fresh one after so many attempts: leaks of user code stay small. */
  readonly maxAttempts?: number
  /** … or when it holds more memory than this after an attempt. */
  readonly maxResidentBytes?: number
  readonly now: () => number
  /** Told of the first process in a row that cannot be started; others are tried for as long as there is work for them. */
  readonly onTrouble?: (error: ServoError) => void
}

type Completed = Extract<FromWorker, { type: 'completed' }>

let compiled: typeof attemptResult | undefined

/** Compiled by the first result: a second one makes up for it. */
function checkResult(result: unknown): ReturnType<typeof attemptResult.safeParse> {
  compiled ??= z.compile(attemptResult) as typeof attemptResult
  return compiled.safeParse(result)
}

/** Code that reports what cannot be would report it again. */
function badReport([issue]: readonly z.core.$ZodIssue[]): AttemptResult {
  const message = `What the attempt reported is not valid: ${issue?.path.join('.') || 'the report'} ${issue?.message}`
  return { outcome: 'FAILED', error: { category: 'invalid', message, retryable: false } }
}

/** How long a process that is not among the warm ones waits for more work. */
const LINGER_MS = 60_000

/** An attempt that finds its process leaving goes to the next. More than a few of those are no coincidence. */
const MAX_MOVES = 5

/** Reading a process's memory costs as much as a tiny attempt: done after each long one, and now and then. */
const LONG_ATTEMPT_MS = 20
const MEMORY_CHECK_EVERY = 64

/** An attempt that takes longer than this holds up nobody: what waits behind it is asked back. */
const PATIENCE_MS = 50

/** What is printed past `console` comes when it likes. If nothing follows at once, it is still heard as the attempt's own. */
const PRINTING_MS = 1_000

/** Runs attempts in processes of their own, so that user code can harm nobody but itself. */
export class WorkerPool {
  /** Called when an attempt has ended, so that there may be room for another. */
  onIdle: (() => void) | undefined
  #options: Required<WorkerPoolOptions>
  /** Every attempt that has not ended, and those among them that no process has yet. */
  readonly #jobs = new Map<string, Job>()
  #waiting = new Map<string, Job>()
  /** Every process that has not ended, with the code it runs. */
  readonly #processes = new Map<LocalWorker, Generation>()
  #generation: Generation
  /** The newest code that is being loaded, while attempts still go to the one before. */
  #coming: Generation | undefined
  readonly #pace = new Pace()
  #patienceTimer: NodeJS.Timeout | undefined
  /** The process that was given something last. */
  #woken: LocalWorker | undefined
  #shrinkTimer: NodeJS.Timeout | undefined
  #closing: (() => void) | undefined
  #closed: Promise<void> | undefined

  constructor(options: WorkerPoolOptions) {
    const warm = Math.min(options.warm ?? 2, options.size)
    const defaults = { graceMs: 5_000, maxAttempts: 100_000, maxResidentBytes: 2 ** 30, onTrouble: () => undefined }
    this.#options = { ...defaults, ...options, warm }
    this.#generation = new Generation(options.command)
    for (let i = 0; i < Math.max(warm, 1); i++) this.#spawn(this.#generation)
  }

  /** How loading the project went. */
  ready(): Promise<Loaded | LoadFailed> {
    return this.#generation.outcome
  }

  /** From now on as many attempts at a time. What runs goes on. */
  resize(size: number): void {
    this.#options = { ...this.#options, size }
    this.#handOut()
  }

  /** How many more attempts could begin now. */
  get idle(): number {
    return Math.max(0, this.#options.size - this.#jobs.size)
  }

  /** Runs an attempt as soon as a process is free. Never rejects: whatever happens to the process is a result. */
  run(envelope: DispatchEnvelope, options: JobOptions = {}): Promise<AttemptResult> {
    const known = this.#jobs.get(envelope.attempt_id)
    if (known !== undefined) return known.result
    if (this.#closed !== undefined) return Promise.resolve(cancelled())
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
    if (this.#waiting.has(attemptId)) this.#finish(job, cancelled(), true)
    else job.cancel(options.reason ?? 'it was cancelled', options.graceMs ?? this.#options.graceMs)
    return true
  }

  /**
   * Goes over to other code. Attempts that are running finish where they are; new ones go to the new code as soon as it has
   * loaded. If it cannot be loaded, the old code stays.
   */
  async replace(command: WorkerCommand): Promise<Loaded | LoadFailed> {
    const next = new Generation(command)
    if (this.#closed !== undefined) return this.ready()
    this.#coming?.dismiss()
    this.#coming = next
    this.#spawn(next)
    const outcome = await next.outcome
    if (this.#coming !== next) return outcome
    this.#coming = undefined
    const before = this.#generation
    if (outcome.type === 'load_failed' && before.problem === undefined) return outcome
    this.#generation = next
    before.dismiss()
    this.#handOut()
    return outcome
  }

  /** Ends all attempts and all processes. Nothing is left behind when it resolves. */
  close(options: { readonly graceMs?: number } = {}): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#closing = resolve
    })
    clearTimeout(this.#shrinkTimer)
    clearTimeout(this.#patienceTimer)
    this.#generation.giveUp()
    this.#coming?.giveUp()
    for (const job of this.#waiting.values()) this.#finish(job, cancelled(), true)
    for (const worker of this.#processes.keys()) {
      worker.leaving = true
      if (worker.job === undefined) worker.kill()
      for (const job of worker.jobs) job.cancel('the orchestrator is stopping', options.graceMs ?? this.#options.graceMs)
    }
    if (this.#processes.size === 0) this.#closing?.()
    return this.#closed
  }

  /** False while there is no use in trying. */
  #spawn(generation: Generation): boolean {
    const worker = generation.spawn(
      {
        said: (from, message) => this.#said(from, generation, message),
        gone: (from, ending) => this.#gone(from, generation, ending),
      },
      () => this.#tryAgain(generation),
    )
    if (worker !== undefined) this.#processes.set(worker, generation)
    return worker !== undefined
  }

  /** A process could not be started a while ago. */
  #tryAgain(generation: Generation): void {
    if (generation.isUndecided && generation.workers.size === 0) this.#spawn(generation)
    this.#handOut()
  }

  #handOut(): void {
    if (this.#closed !== undefined) return
    const { idle, workers } = this.#generation
    let queues: LocalWorker[] | undefined
    for (const [id, job] of this.#waiting) {
      job.expectedMs = this.#pace.expectedMs(job.envelope.asset_key)
      const along = this.#woken !== undefined && workers.has(this.#woken) && mayJoin(this.#woken, job)
      let worker = along ? this.#woken : idle.pop()
      if (worker === undefined) {
        queues ??= shortQueues(workers)
        worker = placeIn(queues, job)
      }
      if (worker === undefined) break
      if (worker.job !== undefined) this.#askBackLater()
      this.#waiting.delete(id)
      this.#woken = worker
      job.giveTo(worker)
    }
    while (workers.size < this.#options.size && this.#notBegun() > this.#generation.starting)
      if (!this.#spawn(this.#generation)) break
  }

  /** Attempts that wait, here or behind others. */
  #notBegun(): number {
    let running = 0
    for (const { job } of this.#processes.keys()) if (job !== undefined) running++
    return this.#jobs.size - running
  }

  #askBackLater(): void {
    // After a turn of the event loop: when it is we who were busy, the results are already here.
    this.#patienceTimer ??= setTimeout(() => setImmediate(() => this.#askBack()), PATIENCE_MS).unref()
  }

  #askBack(): void {
    this.#patienceTimer = undefined
    for (const worker of this.#processes.keys()) {
      const { job, jobs, askedBack } = worker
      if (job === undefined || jobs.length === 1) continue
      if (!askedBack && job.elapsedMs() >= PATIENCE_MS) worker.askBack()
      this.#askBackLater()
    }
  }

  /** Attempts that were given to a process and never began are the next to go elsewhere. */
  #takeBack(jobs: readonly Job[]): void {
    if (jobs.length === 0) return
    for (const job of jobs) job.takeBack()
    this.#waiting = new Map([...jobs.map((job) => [job.id, job] as const), ...this.#waiting])
    for (const job of jobs) if (job.isCancelled) this.#finish(job, cancelled(), true)
  }

  #said(worker: LocalWorker, generation: Generation, message: FromWorker): void {
    if (message.type === 'completed') this.#completed(worker, generation, message)
    else if (message.type === 'returned') {
      this.#takeBack(worker.returned(new Set(message.attempt_ids)))
      this.#handOut()
    } else if (message.type === 'log') {
      if (worker.job?.id === message.attempt_id) worker.job.log(message.entries)
    } else if (message.type === 'loaded') {
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
    const checked = checkResult(message.result)
    this.#finish(job, checked.success ? checked.data : badReport(checked.error.issues), true)
    if (this.#isWorn(worker, message.took_ms)) worker.leaving = true
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
    if (worker.leaving) {
      generation.remove(worker)
      worker.kill()
    } else {
      generation.idle.push(worker)
      worker.idleSince = performance.now()
      if (this.#waiting.size === 0) this.#shrinkLater()
    }
    if (this.#waiting.size > 0) this.#handOut()
  }

  #gone(worker: LocalWorker, generation: Generation, ending: Ending): void {
    this.#processes.delete(worker)
    const again = generation.gone(worker, ending) && (generation === this.#generation || generation === this.#coming)
    const [first, ...behind] = worker.jobs
    worker.jobs = []
    if (first !== undefined) {
      const hasBegun = ending.code !== LEFT_IDLE || this.#closed !== undefined || first.moves++ >= MAX_MOVES
      if (hasBegun) this.#finish(first, resultOfEnding(ending), false)
      this.#takeBack(hasBegun ? behind : [first, ...behind])
    }
    if (this.#closed !== undefined) {
      if (this.#processes.size === 0) this.#closing?.()
      return
    }
    if (ending.spawnError !== undefined && generation.hasJustFailed) this.#tell(ending.spawnError)
    if (again) this.#spawn(generation)
    const { verdict, workers } = this.#generation
    if (verdict !== undefined) for (const job of this.#waiting.values()) this.#finish(job, verdict, true)
    // Only after one that was of use: code that ends its process whenever it is loaded must not make us spawn for ever.
    if (generation === this.#generation && worker.served > 0 && workers.size < this.#options.warm) this.#spawn(generation)
    this.#handOut()
  }

  #tell(spawnError: Error): void {
    const { message, hint } = explainFailedStart(spawnError)
    this.#options.onTrouble(new ServoError('unavailable', 'no_worker', message, { hint, cause: spawnError }))
  }

  #finish(job: Job, result: AttemptResult, reported: boolean): void {
    this.#jobs.delete(job.id)
    this.#waiting.delete(job.id)
    job.finish(result, reported)
    this.onIdle?.()
  }

  /** One timer for all: lets go of processes that nobody needed for a while, the coldest first. */
  #shrinkLater(): void {
    if (this.#shrinkTimer !== undefined || this.#generation.workers.size <= this.#options.warm) return
    this.#shrinkTimer = setTimeout(() => {
      this.#shrinkTimer = undefined
      const { idle, workers } = this.#generation
      const since = performance.now() - LINGER_MS
      while (workers.size > this.#options.warm && idle[0] !== undefined && idle[0].idleSince <= since) {
        const [coldest] = idle
        this.#generation.remove(coldest)
        coldest.kill()
      }
      this.#shrinkLater()
    }, LINGER_MS).unref()
  }
}
