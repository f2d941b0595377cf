import type { Runner, TaskList, WorkerUtils } from 'graphile-worker'
import { atEnd } from './ending.ts'

/** `default` is what one gets without asking for more, `fastest` fetches and completes jobs in batches. */
export type Settings = 'default' | 'fastest'

/**
 * As its own performance test has them, but for `refetchDelay`: that spares the database when there are many workers, and
 * makes a single one wait for its next poll, two seconds later, when a batch was the last.
 */
const BATCHES = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }

export interface GraphileOptions {
  readonly url: string
  readonly tasks: TaskList
  readonly settings?: Settings
  readonly concurrency?: number
}

export interface GraphileChains {
  /** Resolves when a chain of so many jobs has run and the database holds none of it. */
  run(length: number): Promise<void>
  stop(): Promise<void>
}

/** Told to itself, not to us: a line for each job would be most of its work. */
process.env['NO_LOG_SUCCESS'] = '1'

/** Workers in this process, as graphile-worker runs them. */
export class Graphile {
  readonly utils: WorkerUtils
  readonly #runner: Runner
  readonly #waiting = new Map<number, () => void>()
  #added = 0
  #stopped: Promise<void> | undefined

  private constructor(utils: WorkerUtils, runner: Runner) {
    this.utils = utils
    this.#runner = runner
    atEnd(() => this.stop())
    // Its last word on a job, although the transaction that removes it may still be under way: `drained` waits for that.
    runner.events.on('job:complete', ({ job, error }) => {
      if (error) throw new Error(`graphile-worker: ${String(error)}`)
      const { number } = job.payload as { number?: number }
      if (number === undefined) return
      this.#waiting.get(number)?.()
      this.#waiting.delete(number)
    })
  }

  static async start({ url, tasks, settings = 'default', concurrency = 24 }: GraphileOptions): Promise<Graphile> {
    const { Logger, makeWorkerUtils, run } = await import('graphile-worker')
    const preset = {
      worker: {
        connectionString: url,
        concurrentJobs: concurrency,
        maxPoolSize: concurrency + 2,
        logger: new Logger(() => () => undefined),
        ...(settings === 'fastest' && BATCHES),
      },
    }
    const utils = await makeWorkerUtils({ preset })
    await utils.migrate()
    return new Graphile(utils, await run({ preset, taskList: tasks, noHandleSignals: true }))
  }

  /** Adds a job and resolves when it has run, which may be before we hear that it was added. */
  async run(task: string): Promise<void> {
    const number = this.#added++
    const over = new Promise<void>((resolve) => this.#waiting.set(number, resolve))
    await this.utils.addJob(task, { number })
    await over
  }

  /** One job after the other: each adds the next, and the last one tells. */
  static async chains(url: string, concurrency: number, body: () => unknown = () => undefined): Promise<GraphileChains> {
    let over: () => void = () => undefined
    const graphile = await Graphile.start({
      url,
      concurrency,
      tasks: {
        async next(payload, { addJob }) {
          const { left } = payload as { left: number }
          body()
          if (left > 1) await addJob('next', { left: left - 1 })
          else over()
        },
      },
    })
    return {
      stop: () => graphile.stop(),
      async run(length) {
        const done = new Promise<void>((resolve) => {
          over = resolve
        })
        await graphile.utils.addJob('next', { left: length })
        await done
        await graphile.drained()
      },
    }
  }

  /** Resolves when the database holds no job any more. */
  async drained(): Promise<void> {
    for (;;) {
      const { rowCount } = await this.utils.withPgClient((pg) => pg.query('select from graphile_worker._private_jobs limit 1'))
      if (rowCount === 0) return
    }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    await this.#runner.stop()
    await this.utils.release()
  }
}
