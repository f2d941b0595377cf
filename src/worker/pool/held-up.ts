import type { LocalWorker } from './local-worker.ts'

/** Work that takes longer than this must not hold up other work: what waits behind it is taken back. */
const HELD_UP_MS = 50

/** Takes back the work that waits in a process behind long work. */
export class HeldUpWork {
  readonly #workers: () => Iterable<LocalWorker>
  #timer: NodeJS.Timeout | undefined

  constructor(workers: () => Iterable<LocalWorker>) {
    this.#workers = workers
  }

  /** Looks for them in a while, and then again for as long as work waits behind other work. */
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
