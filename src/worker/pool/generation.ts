import type { AttemptResult } from '../../contract/dispatch.ts'
import type { FromWorker } from '../../contract/pipe.ts'
import type { ProjectProblem } from '../../contract/project-manifest.ts'
import { type Ending, explainEnding, explainFailedStart, failed } from './ending.ts'
import { FailedStarts } from './failed-starts.ts'
import { LocalWorker, type WorkerCommand, type WorkerEvents } from './local-worker.ts'

export type Loaded = Extract<FromWorker, { type: 'loaded' }>
export type LoadFailed = Extract<FromWorker, { type: 'load_failed' }>

/** Killed more often than this while it loads, it may be the loading that takes too much memory. */
const MAX_KILLED = 10

/** The processes that run one version of the project's code. */
export class Generation {
  /** How loading went in the first process that tried. */
  readonly outcome: Promise<Loaded | LoadFailed>
  /** Those that may get work now or soon, in whatever state. */
  readonly workers = new Set<LocalWorker>()
  /** The one that worked last is on top: its caches are warm, and those below can be let go. */
  readonly idle: LocalWorker[] = []
  /** What went wrong when a process could not load the project, until one can. */
  problem: LoadFailed | undefined
  /** Nobody knows yet whether this code can be loaded. */
  isUndecided = true
  readonly #command: WorkerCommand
  readonly #starting = new Set<LocalWorker>()
  readonly #failedStarts = new FailedStarts()
  #killed = 0
  #resolve!: (outcome: Loaded | LoadFailed) => void

  constructor(command: WorkerCommand) {
    this.#command = command
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  get starting(): number {
    return this.#starting.size
  }

  /** A process could not be started, and the one before it could. */
  get hasJustFailed(): boolean {
    return this.#failedStarts.isFirst
  }

  /**
   * What becomes of attempts that wait. Undefined while a process is left that may take them, or while another may well be
   * started soon.
   */
  get verdict(): AttemptResult | undefined {
    if (this.workers.size > 0 || this.problem === undefined) return undefined
    const [first] = this.problem.problems
    if (this.#failedStarts.areMany && first?.code === NO_WORKER)
      return failed('infrastructure', `${first.message}. ${first.hint}`)
    if (this.#failedStarts.isAny) return undefined
    const where = first?.file ? `${first.file}${first.line ? `:${first.line}` : ''}: ` : ''
    return failed('user', `The project cannot be loaded: ${where}${first?.message ?? 'no reason was given'}`)
  }

  /** Starts a process, unless one could not be started a moment ago: then somebody tries again after a pause. */
  spawn(events: WorkerEvents, tryAgain: () => void): LocalWorker | undefined {
    if (this.#failedStarts.isPausing) return undefined
    // One there must be, whatever it takes.
    const worker = new LocalWorker(this.#command, events, { sparing: this.workers.size > 0 })
    this.workers.add(worker)
    this.#starting.add(worker)
    if (worker.pid === undefined) this.#failedStarts.failed(tryAgain)
    else this.#failedStarts.worked()
    return worker
  }

  loaded(worker: LocalWorker, message: Loaded): void {
    this.#starting.delete(worker)
    this.problem = undefined
    this.#killed = 0
    this.#settle(message)
  }

  loadFailed(worker: LocalWorker, message: LoadFailed): void {
    this.remove(worker)
    this.problem = message
    this.#settle(message)
  }

  /** Whether another process should try: one that was killed from outside says nothing about the code it was loading. */
  gone(worker: LocalWorker, ending: Ending): boolean {
    if (ending.spawnError !== undefined) {
      this.remove(worker)
      // Whoever lives has loaded the code, or will tell.
      if (this.#failedStarts.areMany && this.workers.size === 0) this.loadFailed(worker, notStarted(ending.spawnError))
      return false
    }
    const wasStarting = this.#starting.has(worker)
    const isKilled = wasStarting && !worker.killed && ending.signal === 'SIGKILL' && this.#killed < MAX_KILLED
    if (isKilled) this.#killed += 1
    else if (wasStarting) this.loadFailed(worker, { type: 'load_failed', problems: [problemOf(worker, ending)] })
    this.remove(worker)
    return isKilled
  }

  /** It gets no more work. */
  remove(worker: LocalWorker): void {
    this.workers.delete(worker)
    this.#starting.delete(worker)
    const place = this.idle.indexOf(worker)
    if (place !== -1) this.idle.splice(place, 1)
  }

  /** No process is started any more, and nobody waits for one in vain. */
  giveUp(): void {
    this.#failedStarts.end()
    this.#settle({ type: 'load_failed', problems: [GIVEN_UP] })
  }

  /** Nothing is given to these processes any more: the busy ones finish, the others end now. */
  dismiss(): void {
    this.giveUp()
    for (const worker of this.workers) {
      worker.leaving = true
      if (worker.job === undefined) worker.kill()
    }
  }

  #settle(outcome: Loaded | LoadFailed): void {
    this.isUndecided = false
    this.#resolve(outcome)
  }
}

/** Nobody waits for it any more: the pool is closing, or newer code has come. */
const GIVEN_UP: ProjectProblem = { code: 'load_failed', message: 'Loading was given up before it was complete.' }

const NO_WORKER = 'no_worker'

function notStarted(error: Error): LoadFailed {
  return { type: 'load_failed', problems: [{ code: NO_WORKER, ...explainFailedStart(error) }] }
}

function problemOf({ killed }: LocalWorker, ending: Ending): ProjectProblem {
  if (killed) return GIVEN_UP
  const words = ending.stderr.trim()
  return {
    code: 'load_failed',
    message: `${explainEnding(ending)}${words === '' ? '' : `\n${words}`}`,
    hint: 'It ended while it loaded the project. Code at the top of a module must not end or block the process.',
  }
}
