import type { LocalWorker } from './local-worker.ts'

/** An attempt that takes longer than this must not hold up others: the attempts behind it are taken back. */
const HELD_UP_MS = 50

/** Takes back the attempts that wait in a process behind a long one. */
export class HeldUpAttempts {
  readonly #workers: () => Iterable<LocalWorker>
  #timer: NodeJS.Timeout | undefined

  constructor(workers: () => Iterable<LocalWorker>) {
    this.#workers = workers
  }

  /** Looks for them in a while, and then again for as long as attempts wait behind others. */
  lookLater(): void {
    // After a turn of the event loop: when it was we who were busy, the results are here by then.
    this.#timer ??= setTimeout(() => setImmediate(() => this.#look()), HELD_UP_MS).unref()
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  #look(): void {
    this.#timer = undefined
    for (const worker of this.#workers()) {
      const { job, jobs } = worker
      if (job === undefined || jobs.length === 1) continue
      if (job.elapsedMs() >= HELD_UP_MS) worker.askBack()
      this.lookLater()
    }
  }
}
