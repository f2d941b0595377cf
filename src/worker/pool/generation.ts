import type { ProjectProblem } from '../../contract/definition.ts'
import type { FromWorker } from '../../contract/pipe.ts'
import { type Ending, explainEnding } from './ending.ts'
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
  readonly #command: WorkerCommand
  readonly #starting = new Set<LocalWorker>()
  #killed = 0
  #settle!: (outcome: Loaded | LoadFailed) => void

  constructor(command: WorkerCommand) {
    this.#command = command
    this.outcome = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  get starting(): number {
    return this.#starting.size
  }

  spawn(events: WorkerEvents): LocalWorker {
    const worker = new LocalWorker(this.#command, events)
    this.workers.add(worker)
    this.#starting.add(worker)
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

  /** Nothing is given to these processes any more: the busy ones finish, the others end now. */
  dismiss(): void {
    for (const worker of this.workers) {
      worker.leaving = true
      if (worker.job === undefined) worker.kill()
    }
  }
}

function problemOf({ killed }: LocalWorker, ending: Ending): ProjectProblem {
  // Nobody waits for it any more: the pool is closing, or newer code has come.
  if (killed) return { code: 'load_failed', message: 'Loading was given up before it was complete.' }
  const words = ending.stderr.trim()
  return {
    code: 'load_failed',
    message: `${explainEnding(ending)}${words === '' ? '' : `\n${words}`}`,
    hint: 'It ended while it loaded the project. Code at the top of a module must not end or block the process.',
  }
}
