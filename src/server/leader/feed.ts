import { automationState } from '../../domain/automation/automation-state.table.ts'
import { type BackfillRow, backfills } from '../../domain/backfills/backfills.table.ts'
import { type RunRow, runs } from '../../domain/runs/runs.table.ts'
import { type ScheduleRow, scheduleDefinitions } from '../../domain/schedules/schedule-definitions.table.ts'
import { type ScheduleStateRow, scheduleState } from '../../domain/schedules/schedule-state.table.ts'
import type { scheduleTicks } from '../../domain/schedules/schedule-ticks.table.ts'
import { sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import { type SensorStateRow, sensorState } from '../../domain/sensors/sensor-state.table.ts'
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
      readonly run: Readonly<RunRow> | undefined
      readonly attempt: Readonly<Row<typeof taskAttempts>> | undefined
    }
  | { readonly type: 'tick'; readonly schedule: Readonly<ScheduleRow>; readonly tick: RecordedTick }
  | { readonly type: 'backfill'; readonly backfill: Readonly<BackfillRow> }
  | Switch
  | ({ readonly type: 'evaluation' } & RecordedEvaluation)

/** A tick that is on record, or several that were skipped together. */
export type RecordedTick = Readonly<Row<typeof scheduleTicks>>

/** Somebody or something paused or resumed a schedule, a sensor or all automation. */
export interface Switch {
  readonly type: 'switch'
  readonly of: 'schedule' | 'sensor' | 'automation'
  /** Null for all automation. */
  readonly name: string | null
  readonly to: 'paused' | 'resumed'
  readonly by: string | null
  readonly reason: string | null
}

type ChangeListener = (change: Change) => void

interface SwitchedRow {
  readonly status: string
  readonly status_changed_by: string | null
  readonly status_reason: string | null
}

export interface FeedSource {
  rows(): Rows
  /** Resolves when all that is folded is durable. */
  durable(): Promise<void>
  /** The newest ticks on record. */
  recentTicks(): Iterable<RecordedTick>
  now(): number
}

/** A tick may be shown again by what is learnt of it later; so many are remembered, which are more than are ever shown at once. */
const MAX_TOLD_TICKS = 10_000

/** Notifies listeners that a run or a task changed its state, a schedule ticked, a sensor was evaluated or automation was paused or resumed, once that is durable. */
export class Feed {
  readonly #listeners = new Set<ChangeListener>()
  /** The state of each row that was last reported: rows change in place, and more often than their state. */
  readonly #reported = new WeakMap<AnyRow, string>()
  readonly #source: FeedSource
  /** The same for runs that have not ended, by key: after an outage all row objects are new. */
  readonly #unfinished = new Map<string, Map<string, string>>()
  #ended: Readonly<RunRow>[] = []
  /** Ticks from before the state was first read are no news. */
  #openedAt = Number.POSITIVE_INFINITY
  readonly #toldTicks = new Set<string>()
  #looksForTicks = false
  /** Who is paused, as it was last seen. */
  readonly #paused = new Map<string, boolean>()

  constructor(source: FeedSource) {
    this.#source = source
  }

  get reactors(): readonly Reactor[] {
    return [
      reactor(runs, (run) => this.#runChanged(run)),
      reactor(tasks, (task) => this.#taskChanged(task)),
      reactor(backfills, (backfill) => this.#backfillChanged(backfill)),
      reactor(scheduleState, (state) => this.#scheduleChanged(state)),
      reactor(sensorState, (state) => this.#sensorChanged(state)),
      reactor(automationState, (state) => this.#switched(state, { of: 'automation', name: null }, state.scope)),
    ]
  }

  /** With `sinceOpened` it is told of the runs, too, that began while nobody listened. */
  listen(listener: ChangeListener, { sinceOpened = false }: { readonly sinceOpened?: boolean } = {}): () => void {
    this.#listeners.add(listener)
    if (sinceOpened) this.#tellBegun()
    // What was caught up while the server started is news too.
    this.#lookForTicks()
    return () => this.#listeners.delete(listener)
  }

  /** Call when the state was read. Runs that ended before are not reported, nor are changes that were reported before an outage. */
  opened(rows: Rows, ticks: Iterable<RecordedTick>): void {
    this.#openedAt = Math.min(this.#openedAt, this.#source.now())
    // A clock that was ahead leaves ticks that look new.
    for (const tick of ticks) this.#toldTicks.add(nameOfTick(tick))
    for (const backfill of rows.hot(backfills).all()) this.#reported.set(backfill, backfill.state)
    for (const state of rows.hot(scheduleState).all()) this.#notePaused(state.schedule_id, state)
    for (const state of rows.hot(sensorState).all()) this.#notePaused(state.sensor_id, state)
    for (const state of rows.hot(automationState).all()) this.#notePaused(state.scope, state)
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

  #tellBegun(): void {
    const rows = this.#source.rows()
    for (const run of rows.hot(runs).all()) {
      if (this.#reported.has(run)) continue
      this.#runChanged(run)
      // Those of a run that has ended are told with its end.
      if (run.finished_at === null) for (const task of rows.hot(tasks).under(run.run_id)) this.#taskChanged(task)
    }
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
    const rows = this.#source.rows()
    const attempt = rows.hot(taskAttempts).get(task.run_id, task.task_key, task.attempt)
    this.#tell({ type: 'task', task, attempt, run: rows.hot(runs).get(task.run_id) })
  }

  /** That it was created is told when it begins, a moment later. */
  #backfillChanged(backfill: Readonly<BackfillRow>): void {
    if (backfill.state !== 'PENDING' && this.#isNews(backfill, backfill.state)) this.#tell({ type: 'backfill', backfill })
  }

  #scheduleChanged(state: Readonly<ScheduleStateRow>): void {
    const schedule = this.#source.rows().hot(scheduleDefinitions).get(state.schedule_id)
    this.#switched(state, { of: 'schedule', name: schedule?.schedule_name ?? state.schedule_id }, state.schedule_id)
    this.#lookForTicks()
  }

  #sensorChanged(state: Readonly<SensorStateRow>): void {
    const sensor = this.#source.rows().hot(sensorDefinitions).get(state.sensor_id)
    this.#switched(state, { of: 'sensor', name: sensor?.sensor_name ?? state.sensor_id }, state.sensor_id)
  }

  #switched(state: Readonly<SwitchedRow>, what: Pick<Switch, 'of' | 'name'>, id: string): void {
    const wasPaused = this.#paused.get(id) ?? false
    const isPaused = this.#notePaused(id, state)
    if (isPaused === wasPaused) return
    const { status_changed_by: by, status_reason: reason } = state
    this.#tell({ type: 'switch', ...what, to: isPaused ? 'paused' : 'resumed', by, reason })
  }

  #notePaused(id: string, { status }: Readonly<SwitchedRow>): boolean {
    this.#paused.set(id, status === 'PAUSED')
    return status === 'PAUSED'
  }

  /** Looks once for everything that is shown at the same time. */
  #lookForTicks(): void {
    if (this.#listeners.size === 0 || this.#looksForTicks) return
    this.#looksForTicks = true
    queueMicrotask(() => void this.#tellTicks())
  }

  async #tellTicks(): Promise<void> {
    this.#looksForTicks = false
    const ticks = [...this.#source.recentTicks()].filter((tick) => this.#isNewTick(tick))
    if (ticks.length === 0) return
    const isDurable = await this.#source.durable().then(
      () => true,
      () => false,
    )
    if (!isDurable) return
    const newest = ticks.filter((tick) => this.#isNewTick(tick))
    newest.sort((a, b) => (a.scheduled_for ?? 0) - (b.scheduled_for ?? 0))
    for (const tick of newest) {
      this.#toldTicks.add(nameOfTick(tick))
      const schedule = this.#source
        .rows()
        .hot(scheduleDefinitions)
        .get(tick.schedule_id ?? '')
      if (schedule !== undefined) this.#tell({ type: 'tick', schedule, tick })
    }
    for (const oldest of this.#toldTicks) {
      if (this.#toldTicks.size <= MAX_TOLD_TICKS) break
      this.#toldTicks.delete(oldest)
    }
  }

  #isNewTick(tick: RecordedTick): boolean {
    return tick.status !== null && (tick.evaluated_at ?? 0) >= this.#openedAt && !this.#toldTicks.has(nameOfTick(tick))
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
const nameOfTick = ({ tick_id, status }: RecordedTick): string => `${tick_id} ${status}`
const taskNews = (task: Readonly<TaskRow>): string => `${task.state} ${task.attempt}`
