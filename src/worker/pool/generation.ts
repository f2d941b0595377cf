import type { FromWorker } from '../../contract/pipe.ts'
import type { ProjectProblem } from '../../contract/project-manifest.ts'
import { assert } from '../../lib/assert.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'
import { type Ending, explainEnding, explainFailedStart } from './ending.ts'
import { FailedStarts } from './failed-starts.ts'
import type { Job } from './job.ts'
import { LocalWorker, type WorkerCommand, type WorkerEvents } from './local-worker.ts'
import { mayJoin } from './short-queue.ts'
import type { WorkEnd } from './work.ts'

export type Loaded = Extract<FromWorker, { type: 'loaded' }>
export type LoadFailed = Extract<FromWorker, { type: 'load_failed' }>

type GenerationState =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'loaded' }
  | { readonly kind: 'broken'; readonly problem: LoadFailed }
  | { readonly kind: 'dismissed' }

/** Where each state may lead. */
const transitions: Transitions<GenerationState['kind']> = {
  unknown: ['loaded', 'broken', 'dismissed'],
  loaded: ['loaded', 'broken', 'dismissed'],
  broken: ['loaded', 'broken', 'dismissed'],
  dismissed: [],
}

/** A process that is killed from outside while it loads is replaced this often. More, and loading itself takes too much memory. */
const MAX_KILLED = 10

/** How long a process that is not among the warm ones waits for more work. */
const LINGER_MS = 60_000

/**
 * The processes that run one version of the project's code.
 *
 * Its states:
 * - `unknown`: no process has reported yet whether it can load this code.
 * - `loaded`: the last process that reported could load it.
 * - `broken`: the last process that reported could not, or none could be started for a while.
 * - `dismissed`: newer code has come, or the pool is closing. No process is started any more; the busy ones finish.
 */
export class Generation {
  readonly #command: WorkerCommand
  readonly #firstLoad = Promise.withResolvers<Loaded | LoadFailed>()
  /** Processes that may get work now or later. */
  readonly #workers = new Set<LocalWorker>()
  /** Those of them that have not reported yet how loading went. */
  readonly #starting = new Set<LocalWorker>()
  /** Those of them that wait for work. The last one worked last: its caches are warm, and the first can be let go. */
  readonly #idle: { readonly worker: LocalWorker; readonly since: number }[] = []
  readonly #failedStarts = new FailedStarts()
  #state: GenerationState = { kind: 'unknown' }
  /** How many processes in a row were killed from outside while they loaded. */
  #killed = 0
  /** The process that was given work last. */
  #woken: LocalWorker | undefined
  #shrinkTimer: NodeJS.Timeout | undefined

  constructor(command: WorkerCommand) {
    this.#command = command
  }

  /** How loading went in the first process that reported. */
  get firstLoad(): Promise<Loaded | LoadFailed> {
    return this.#firstLoad.promise
  }

  get workers(): ReadonlySet<LocalWorker> {
    return this.#workers
  }

  get starting(): number {
    return this.#starting.size
  }

  get isUnknown(): boolean {
    return this.#state.kind === 'unknown'
  }

  get isBroken(): boolean {
    return this.#state.kind === 'broken'
  }

  /** A process could not be started, and the one before it could. */
  get hasJustFailed(): boolean {
    return this.#failedStarts.isFirst
  }

  /**
   * The end of work that waits in vain. Undefined while a process is left that has loaded the code, or while another may well
   * be started soon.
   */
  get failure(): WorkEnd | undefined {
    // One that still loads reads the same files. It has its say about work that came after those that could not load them.
    if (this.#workers.size > this.#starting.size || this.#state.kind !== 'broken') return undefined
    const [first] = this.#state.problem.problems
    if (this.#failedStarts.areMany && first?.code === NO_WORKER)
      return { kind: 'not_begun', category: 'infrastructure', message: `${first.message}. ${first.hint}` }
    if (this.#failedStarts.isAny) return undefined
    return { kind: 'not_begun', category: 'user', message: whyNotLoaded(this.#state.problem.problems) }
  }

  /** Starts a process, unless one could not be started a moment ago: then `tryAgain` is called after a pause. */
  spawn(events: WorkerEvents, tryAgain: () => void): LocalWorker | undefined {
    assert(this.#state.kind !== 'dismissed', 'code that was dismissed gets no more processes')
    if (this.#failedStarts.isPausing) return undefined
    // The first process may take even the file descriptors that the server keeps for itself: without one nothing runs.
    const worker = new LocalWorker(this.#command, events, { sparing: this.#workers.size > 0 })
    this.#workers.add(worker)
    this.#starting.add(worker)
    if (worker.pid === undefined) this.#failedStarts.failed(tryAgain)
    else this.#failedStarts.worked()
    return worker
  }

  isStarting(worker: LocalWorker): boolean {
    return this.#starting.has(worker)
  }

  loaded(worker: LocalWorker, message: Loaded): void {
    this.#starting.delete(worker)
    this.#killed = 0
    this.#conclude({ kind: 'loaded' }, message)
  }

  loadFailed(worker: LocalWorker, message: LoadFailed): void {
    this.remove(worker)
    this.#conclude({ kind: 'broken', problem: message }, message)
  }

  /** True if another process should try: a process that was killed from outside proves nothing about the code it was loading. */
  gone(worker: LocalWorker, ending: Ending): boolean {
    if (ending.spawnError !== undefined) {
      this.remove(worker)
      // While another process lives, it has loaded the code or will report that it cannot.
      if (this.#failedStarts.areMany && this.#workers.size === 0) this.loadFailed(worker, notStarted(ending.spawnError))
      return false
    }
    const wasStarting = this.#starting.has(worker)
    const tryAgain = wasStarting && !ending.killed && ending.signal === 'SIGKILL' && this.#killed < MAX_KILLED
    if (tryAgain) this.#killed += 1
    else if (wasStarting) this.loadFailed(worker, { type: 'load_failed', problems: [problemOf(ending)] })
    this.remove(worker)
    return tryAgain
  }

  /** It has nothing to do, and is the next to get work. */
  rest(worker: LocalWorker): void {
    this.#idle.push({ worker, since: performance.now() })
  }

  /** A process that takes work of this length at once: a process that is being woken anyway, or an idle one. */
  take(expectedMs: number): LocalWorker | undefined {
    if (this.#woken !== undefined && mayJoin(this.#woken, expectedMs)) return this.#woken
    // Code that was left behind may have had its idle process killed.
    for (let next = this.#idle.pop(); next !== undefined; next = this.#idle.pop()) if (next.worker.takesWork) return next.worker
    return undefined
  }

  give(worker: LocalWorker, job: Job, expectedMs: number): void {
    this.#woken = worker
    worker.give(job, expectedMs)
  }

  /** Gives it no more work. */
  remove(worker: LocalWorker): void {
    this.#workers.delete(worker)
    this.#starting.delete(worker)
    if (this.#woken === worker) this.#woken = undefined
    const place = this.#idle.findIndex((idle) => idle.worker === worker)
    if (place !== -1) this.#idle.splice(place, 1)
  }

  /** Lets go of processes that had no work for a while, the coldest first, until only the warm ones are left. */
  shrinkLater(warm: number): void {
    if (this.#shrinkTimer !== undefined || this.#workers.size <= warm) return
    this.#shrinkTimer = setTimeout(() => {
      this.#shrinkTimer = undefined
      const since = performance.now() - LINGER_MS
      while (this.#workers.size > warm && this.#idle[0] !== undefined && this.#idle[0].since <= since) {
        const { worker } = this.#idle[0]
        this.remove(worker)
        worker.kill()
      }
      this.shrinkLater(warm)
    }, LINGER_MS).unref()
  }

  /** Starts no more processes, gives living ones no more work, and rejects callers that wait for the code to be loaded. */
  dismiss(): void {
    this.#failedStarts.end()
    clearTimeout(this.#shrinkTimer)
    if (this.#state.kind !== 'dismissed') this.#conclude({ kind: 'dismissed' }, { type: 'load_failed', problems: [GIVEN_UP] })
    for (const worker of this.#workers) worker.leave()
  }

  /** What its processes report after it was dismissed changes nothing. */
  #conclude(next: GenerationState, message: Loaded | LoadFailed): void {
    if (this.#state.kind === 'dismissed') return
    transition('a generation', transitions, this.#state.kind, next.kind)
    this.#state = next
    this.#firstLoad.resolve(message)
  }
}

const GIVEN_UP: ProjectProblem = { code: 'load_failed', message: 'Loading was cancelled before it finished.' }

const NO_WORKER = 'no_worker'

/** The first problem of a project that cannot be loaded, in one sentence. */
export function whyNotLoaded([first]: readonly ProjectProblem[]): string {
  const where = first?.file ? `${first.file}${first.line ? `:${first.line}` : ''}: ` : ''
  return `The project cannot be loaded: ${where}${first?.message ?? 'no reason was given'}`
}

function notStarted(error: Error): LoadFailed {
  return { type: 'load_failed', problems: [{ code: NO_WORKER, ...explainFailedStart(error) }] }
}

function problemOf(ending: Ending): ProjectProblem {
  if (ending.killed) return GIVEN_UP
  const words = ending.stderr.trim()
  return {
    code: 'load_failed',
    message: `${explainEnding(ending)}${words === '' ? '' : `\n${words}`}`,
    hint: 'It ended while it loaded the project. Code at the top of a module must not end or block the process.',
  }
}
