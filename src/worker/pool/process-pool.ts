import type { FromWorker } from '../../contract/pipe.ts'
import { ServoError } from '../../lib/error.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'
import { LEFT_IDLE } from '../attempt-results.ts'
import { type Ending, endOfWork, explainFailedStart } from './ending.ts'
import { Generation, type Loaded, type LoadFailed } from './generation.ts'
import { HeldUpWork } from './held-up.ts'
import { Job, type JobOptions } from './job.ts'
import type { LocalWorker, WorkerCommand } from './local-worker.ts'
import { Pace } from './pace.ts'
import { placeIn, shortQueues } from './short-queue.ts'
import { CANCELLED, type Work, type WorkEnd } from './work.ts'

export type { JobOptions, Loaded, LoadFailed, WorkerCommand }

export interface ProcessPoolOptions {
  readonly command: WorkerCommand
  /** How many pieces of work run at a time, each in a process of its own. */
  readonly size: number
  /** False: nothing waits in a process behind other work, so that work which never yields holds up nothing. */
  readonly sharing?: boolean
  /** Processes that stay although there is nothing to do. A process starts in some 100 ms. */
  readonly warm?: number
  /** How long work that is asked to stop may take before it is killed, unless the caller sets another time. */
  readonly graceMs?: number
  /** A process is replaced after this many pieces of work, so that leaks of user code stay small. */
  readonly maxServed?: number
  /** … or when it holds more memory than this after one. */
  readonly maxResidentBytes?: number
  readonly now: () => number
  /** Called for the first process in a row that cannot be started; others are tried for as long as there is work for them. */
  readonly onTrouble?: (error: ServoError) => void
}

type Completed = Extract<FromWorker, { type: 'completed' }>

/** To read the memory of a process costs as much as a tiny piece of work, so it is done after each long one, and now and then. */
const LONG_WORK_MS = 20
const MEMORY_CHECK_EVERY = 64

/**
 * Output that is printed past `console` may arrive after the work has ended. Work that prints so counts as this long: then
 * nothing follows it at once, and late output still belongs to it.
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
 * Does work in processes of their own, so that user code can harm only itself. Work ends in a `Result`, made of what is known
 * about its end.
 *
 * Its states:
 * - `open`: work is taken and handed out.
 * - `closing`: all work is cancelled, and processes end.
 * - `closed`: no process is left.
 */
export class ProcessPool<Result> {
  readonly #options: Required<ProcessPoolOptions>
  readonly #resultOf: (end: WorkEnd) => Result
  /** All work that has not ended. */
  readonly #jobs = new Map<string, { readonly job: Job; readonly result: Promise<Result> }>()
  /** Work that no process has yet, in order. */
  readonly #waiting = new Map<string, Job>()
  /** Every process that has not ended, with the code it runs. */
  readonly #processes = new Map<LocalWorker, Generation>()
  readonly #heldUp = new HeldUpWork(() => this.#processes.keys())
  readonly #pace = new Pace()
  readonly #closed = Promise.withResolvers<void>()
  #state: PoolState = 'open'
  #size: number
  /** The code that work goes to. */
  #generation: Generation
  /** Newer code that is being loaded. */
  #coming: Generation | undefined

  constructor(options: ProcessPoolOptions, resultOf: (end: WorkEnd) => Result) {
    const warm = Math.min(options.warm ?? 2, options.size)
    const defaults = {
      graceMs: 5_000,
      maxServed: 100_000,
      sharing: true,
      maxResidentBytes: 2 ** 30,
      onTrouble: () => undefined,
    }
    this.#options = { ...defaults, ...options, warm }
    this.#resultOf = resultOf
    this.#size = options.size
    this.#generation = new Generation(options.command)
    for (let i = 0; i < Math.max(warm, 1); i++) this.#spawn(this.#generation)
  }

  /** How loading the project went. */
  ready(): Promise<Loaded | LoadFailed> {
    return this.#generation.firstLoad
  }

  /** Changes how much runs at a time. Work that runs goes on. */
  resize(size: number): void {
    this.#size = size
    this.#handOut()
  }

  /** How many more pieces of work could begin now. */
  get idle(): number {
    return Math.max(0, this.#size - this.#jobs.size)
  }

  /** Does work as soon as a process is free. Never rejects: whatever happens to the process is a result. */
  do(work: Work, options: JobOptions = {}): Promise<Result> {
    const known = this.#jobs.get(work.id)
    if (known !== undefined) return known.result
    if (this.#state !== 'open') return Promise.resolve(this.#resultOf(CANCELLED))
    const job = new Job(work, options, this.#options)
    const result = job.end.then(this.#resultOf)
    this.#jobs.set(job.id, { job, result })
    this.#waiting.set(job.id, job)
    this.#handOut()
    return result
  }

  /** Asks work to stop, and kills its process after the grace. False when there is no such work. */
  cancel(id: string, options: { readonly graceMs?: number; readonly reason?: string } = {}): boolean {
    const job = this.#jobs.get(id)?.job
    if (job === undefined) return false
    if (this.#waiting.has(id)) this.#finish(job, CANCELLED)
    else job.cancel(options.reason ?? 'it was cancelled', options.graceMs ?? this.#options.graceMs)
    return true
  }

  /**
   * Goes over to other code. Work that is running finishes where it is; new work goes to the new code as soon as it has
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

  /** Ends all work and all processes. Nothing is left behind when it resolves. */
  close(options: { readonly graceMs?: number } = {}): Promise<void> {
    if (this.#state === 'open') this.#enter('closing')
    this.#heldUp.end()
    this.#generation.dismiss()
    this.#coming?.dismiss()
    for (const job of this.#waiting.values()) this.#finish(job, CANCELLED)
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
      const expectedMs = this.#options.sharing ? this.#pace.expectedMs(job.work.name) : Number.POSITIVE_INFINITY
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

  /** How much work waits, here or in a process. */
  #notBegun(): number {
    let running = 0
    for (const { job } of this.#processes.keys()) if (job !== undefined) running++
    return this.#jobs.size - running
  }

  /** Work that was given to a process and never began is the next to go elsewhere. */
  #takeBack(jobs: readonly Job[]): void {
    if (jobs.length === 0) return
    const unwanted = jobs.filter(({ isCancelled }) => isCancelled)
    const others = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const job of jobs) job.takeBack()
    for (const job of [...jobs, ...others]) this.#waiting.set(job.id, job)
    for (const job of unwanted) this.#finish(job, CANCELLED)
  }

  #receive(worker: LocalWorker, generation: Generation, message: FromWorker): void {
    switch (message.type) {
      case 'completed':
        this.#completed(worker, generation, message)
        break
      case 'returned':
        this.#takeBack(worker.returned(new Set(message.ids)))
        this.#handOut()
        break
      case 'log':
        if (worker.job?.id === message.id) worker.job.log(message.entries)
        break
      case 'still_loading':
        if (generation.isStarting(worker)) this.#options.onTrouble(slowModule(message.file))
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
    const job = worker.jobs.find(({ id }) => id === message.id)
    if (job === undefined) return
    worker.ended(job)
    this.#pace.ended(job.work.name, job.hasPrinted ? PRINTING_MS : message.took_ms)
    this.#finish(job, { kind: 'reported', result: message.result })
    if (this.#isWorn(worker, message.took_ms)) worker.leave()
    if (worker.job === undefined) this.#free(worker, generation)
    else if (this.#waiting.size > 0) this.#handOut()
  }

  #isWorn(worker: LocalWorker, tookMs: number): boolean {
    const { maxServed, maxResidentBytes } = this.#options
    if (worker.served >= maxServed) return true
    if (worker.served % MEMORY_CHECK_EVERY !== 0 && tookMs < LONG_WORK_MS) return false
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
      if (hasBegun) this.#finish(first, endOfWork(ending), false)
      this.#takeBack(hasBegun ? behind : [first, ...behind])
    }
    if (this.#state !== 'open') {
      this.#closedWhenEmpty()
      return
    }
    if (ending.spawnError !== undefined && generation.hasJustFailed) this.#reportTrouble(ending.spawnError)
    if (again) this.#spawn(generation)
    const { failure, workers } = this.#generation
    // Work that came after this process had started may find the code mended.
    if (failure !== undefined)
      for (const job of this.#waiting.values()) if (job.since <= worker.startedAt) this.#finish(job, failure)
    // Only after a process that was of use: code that ends its process whenever it is loaded must not make us spawn for ever.
    if (generation === this.#generation && worker.served > 0 && workers.size < this.#options.warm) this.#spawn(generation)
    this.#handOut()
  }

  #reportTrouble(spawnError: Error): void {
    const { message, hint } = explainFailedStart(spawnError)
    this.#options.onTrouble(new ServoError('unavailable', 'no_worker', message, { hint, cause: spawnError }))
  }

  /** `byItself`: false when its process ended without a report. */
  #finish(job: Job, end: WorkEnd, byItself = true): void {
    this.#jobs.delete(job.id)
    this.#waiting.delete(job.id)
    job.finish(end, byItself)
  }
}

const slowModule = (file: string): ServoError =>
  new ServoError(
    'unavailable',
    'still_loading',
    `${file.slice(0, 500)} is still being imported: it, or a module it imports, waits for something`,
  )
