import { type RunRow, runs } from '../../domain/runs/runs.table.ts'
import { type ScheduleRow, scheduleDefinitions } from '../../domain/schedules/schedule-definitions.table.ts'
import { type ScheduleStateRow, scheduleState } from '../../domain/schedules/schedule-state.table.ts'
import { taskAttempts } from '../../domain/tasks/task-attempts.table.ts'
import { isTaskOver, type TaskRow, tasks } from '../../domain/tasks/tasks.table.ts'
import type { Reactor } from '../../engine/loop/loop.ts'
import type { Rows } from '../../model/rows.ts'
import type { AnyRow, Row } from '../../model/table.ts'
import { reactor } from './reactor.ts'
import type { RecordedEvaluation } from './sensors/evaluations.ts'

export type Change =
  | { readonly type: 'run'; readonly run: Readonly<RunRow>; readonly isNew: boolean }
  | {
      readonly type: 'task'
      readonly task: Readonly<TaskRow>
      readonly attempt: Readonly<Row<typeof taskAttempts>> | undefined
    }
  | { readonly type: 'tick'; readonly schedule: Readonly<ScheduleRow>; readonly state: Readonly<ScheduleStateRow> }
  | ({ readonly type: 'evaluation' } & RecordedEvaluation)

type ChangeListener = (change: Change) => void

export interface FeedSource {
  rows(): Rows
  /** Resolves when all that is folded is durable. */
  durable(): Promise<void>
}

/** Notifies listeners that a run or a task changed its state, a schedule ticked or a sensor was evaluated, once that is durable. */
export class Feed {
  readonly #listeners = new Set<ChangeListener>()
  /** The state of each row that was last reported: rows change in place, and more often than their state. */
  readonly #reported = new WeakMap<AnyRow, string>()
  readonly #source: FeedSource
  /** The same for runs that have not ended, by key: after an outage all row objects are new. */
  readonly #unfinished = new Map<string, Map<string, string>>()
  #ended: Readonly<RunRow>[] = []

  constructor(source: FeedSource) {
    this.#source = source
  }

  get reactors(): readonly Reactor[] {
    return [
      reactor(runs, (run) => this.#runChanged(run)),
      reactor(tasks, (task) => this.#taskChanged(task)),
      reactor(scheduleState, (state) => this.#scheduleChanged(state)),
    ]
  }

  listen(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Call when the state was read. Runs that ended before are not reported, nor are changes that were reported before an outage. */
  opened(rows: Rows): void {
    for (const state of rows.hot(scheduleState).all()) this.#reported.set(state, tickNews(state))
    for (const run of rows.hot(runs).all()) {
      const reported = this.#unfinished.get(run.run_id)
      if (reported === undefined && run.finished_at !== null) this.#reported.set(run, runNews(run))
      const before = reported?.get('')
      if (before !== undefined) this.#reported.set(run, before)
      for (const task of rows.hot(tasks).under(run.run_id)) {
        const last = reported === undefined && isTaskOver(task.state) ? taskNews(task) : reported?.get(task.task_key)
        if (last !== undefined) this.#reported.set(task, last)
      }
    }
  }

  /** Call with each evaluation that is durable. Polls that found nothing are no news. */
  evaluated(evaluated: RecordedEvaluation): void {
    const { trigger_source, status, accepted } = evaluated.evaluation
    if (trigger_source === 'push' || status !== 'no_new_data' || accepted) this.#tell({ type: 'evaluation', ...evaluated })
  }

  #runChanged(run: Readonly<RunRow>): void {
    const { run_id } = run
    if (run.finished_at === null && !this.#unfinished.has(run_id)) this.#unfinished.set(run_id, new Map())
    if (run.finished_at !== null && this.#listeners.size === 0) this.#unfinished.delete(run_id)
    const isNew = !this.#reported.has(run)
    if (!this.#isNews(run, runNews(run))) return
    if (run.finished_at === null) {
      this.#unfinished.get(run_id)?.set('', runNews(run))
      this.#tell({ type: 'run', run, isNew })
    } else {
      if (isNew) this.#tell({ type: 'run', run: { ...run, finished_at: null, state: 'PENDING' }, isNew })
      if (this.#ended.push(run) === 1) queueMicrotask(() => void this.#tellEnded())
    }
  }

  #taskChanged(task: Readonly<TaskRow>): void {
    if (!this.#isNews(task, taskNews(task))) return
    this.#unfinished.get(task.run_id)?.set(task.task_key, taskNews(task))
    this.#tell({
      type: 'task',
      task,
      attempt: this.#source.rows().hot(taskAttempts).get(task.run_id, task.task_key, task.attempt),
    })
  }

  #scheduleChanged(state: Readonly<ScheduleStateRow>): void {
    if (state.last_tick_event_id === null || !this.#isNews(state, tickNews(state))) return
    const schedule = this.#source.rows().hot(scheduleDefinitions).get(state.schedule_id)
    if (schedule !== undefined) this.#tell({ type: 'tick', schedule, state })
  }

  #isNews(row: Readonly<AnyRow>, now: string): boolean {
    if (this.#listeners.size === 0 || this.#reported.get(row) === now) return false
    this.#reported.set(row, now)
    return true
  }

  /** Reports the ends of runs once they are durable: rows are ahead of the ledger, and the segment with the end may still be in flight. */
  async #tellEnded(): Promise<void> {
    const ended = this.#ended.splice(0)
    const isDurable = await this.#source.durable().then(
      () => true,
      () => false,
    )
    // The loop broke; the next loop shows every row again.
    if (!isDurable) return
    for (const run of ended) {
      for (const task of this.#source.rows().hot(tasks).under(run.run_id)) this.#taskChanged(task)
      this.#tell({ type: 'run', run, isNew: false })
      this.#unfinished.delete(run.run_id)
    }
  }

  #tell(change: Change): void {
    for (const listener of this.#listeners) listener(change)
  }
}

const runNews = (run: Readonly<RunRow>): string => `${run.state} ${run.cancel_requested_at}`
const tickNews = (state: Readonly<ScheduleStateRow>): string => state.last_tick_event_id ?? ''
const taskNews = (task: Readonly<TaskRow>): string => `${task.state} ${task.attempt}`
