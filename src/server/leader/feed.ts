import { type RunRow, runs } from '../../domain/runs/runs.table.ts'
import { taskAttempts } from '../../domain/tasks/task-attempts.table.ts'
import { type TaskRow, tasks } from '../../domain/tasks/tasks.table.ts'
import type { Reactor } from '../../engine/loop/loop.ts'
import type { Rows } from '../../model/rows.ts'
import type { AnyRow, Row } from '../../model/table.ts'
import { reactor } from './reactor.ts'

export type Change =
  | { readonly type: 'run'; readonly run: Readonly<RunRow>; readonly isNew: boolean }
  | {
      readonly type: 'task'
      readonly task: Readonly<TaskRow>
      readonly attempt: Readonly<Row<typeof taskAttempts>> | undefined
    }

type Listener = (change: Change) => void

export interface FeedSource {
  rows(): Rows
  /** Resolves when all that is folded is durable. */
  durable(): Promise<void>
}

/** Tells its listeners that a run or a task came into another state, once that is durable. */
export class Feed {
  readonly #listeners = new Set<Listener>()
  /** What was last told of a row: rows change in place, and more often than their state does. */
  readonly #told = new WeakMap<AnyRow, string>()
  readonly #source: FeedSource
  #ended: Readonly<RunRow>[] = []

  constructor(source: FeedSource) {
    this.#source = source
  }

  get reactors(): readonly Reactor[] {
    return [reactor(runs, (run) => this.#runChanged(run)), reactor(tasks, (task) => this.#taskChanged(task))]
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #runChanged(run: Readonly<RunRow>): void {
    const isNew = !this.#told.has(run)
    if (!this.#isNews(run, `${run.state} ${run.cancel_requested_at}`)) return
    if (run.finished_at === null) this.#tell({ type: 'run', run, isNew })
    else {
      if (isNew) this.#tell({ type: 'run', run: { ...run, finished_at: null, state: 'PENDING' }, isNew })
      if (this.#ended.push(run) === 1) queueMicrotask(() => void this.#tellEnded())
    }
  }

  #taskChanged(task: Readonly<TaskRow>): void {
    if (!this.#isNews(task, `${task.state} ${task.attempt}`)) return
    this.#tell({
      type: 'task',
      task,
      attempt: this.#source.rows().hot(taskAttempts).get(task.run_id, task.task_key, task.attempt),
    })
  }

  #isNews(row: Readonly<AnyRow>, now: string): boolean {
    if (this.#listeners.size === 0 || this.#told.get(row) === now) return false
    this.#told.set(row, now)
    return true
  }

  /** Rows are ahead of the ledger: what ended a run, and its last tasks, may be in a segment that is still being written. */
  async #tellEnded(): Promise<void> {
    const ended = this.#ended.splice(0)
    const isDurable = await this.#source.durable().then(
      () => true,
      () => false,
    )
    // The loop broke; the one that replaces it shows every row again.
    if (!isDurable) return
    for (const run of ended) {
      for (const task of this.#source.rows().hot(tasks).under(run.run_id)) this.#taskChanged(task)
      this.#tell({ type: 'run', run, isNew: false })
    }
  }

  #tell(change: Change): void {
    for (const listener of this.#listeners) listener(change)
  }
}
