import { attemptId } from '../../domain/dispatch/dispatch-ids.ts'
import { DispatchRequested } from '../../domain/dispatch/dispatch-requested.event.ts'
import { RunCancelRequested } from '../../domain/runs/run-cancel-requested.event.ts'
import { requestFingerprint, runIdFromRunKey } from '../../domain/runs/run-ids.ts'
import { RunRequested } from '../../domain/runs/run-requested.event.ts'
import { type RunRow, runs } from '../../domain/runs/runs.table.ts'
import { runKeyPrefixes, type SourceRef } from '../../domain/runs/trigger.ts'
import { PlanCreated } from '../../domain/tasks/plan-created.event.ts'
import { TaskFinished } from '../../domain/tasks/task-finished.event.ts'
import { TaskSkipped } from '../../domain/tasks/task-skipped.event.ts'
import { TaskStarted } from '../../domain/tasks/task-started.event.ts'
import { type TaskRow, tasks } from '../../domain/tasks/tasks.table.ts'
import { TimerFired } from '../../domain/timers/timer-fired.event.ts'
import { itemAt } from '../../lib/collections/item-at.ts'
import { SECOND_MS, toIso, toMs } from '../../lib/time.ts'
import type { Columns } from '../../model/column.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { EventDefinition, Verdict } from '../../model/event.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { RowOf, Table } from '../../model/table.ts'
import { Bench } from './fold.ts'
import { SimulatedWriter, TENANT, WORKSPACE } from './writers.ts'

/** A few facts told one after the other, a second apart, and the rows they make. For examples that read like a manual. */
export class Story {
  readonly bench = new Bench()
  #now = toMs('2025-01-15T10:00:00.000Z')
  readonly #writer = new SimulatedWriter(1, 0, () => this.#now)

  /** Now, as text; `in` seconds later with an argument. */
  time(inSeconds = 0): string {
    return toIso(this.#now + inSeconds * SECOND_MS)
  }

  /** Time passes, or the clock is set back. */
  pass(ms: number): void {
    this.#now += ms
  }

  /** Writes an event without folding it: it is on its way. */
  write<P, I extends Payload>(definition: EventDefinition<P, I>, payload: I): Envelope {
    this.#now += SECOND_MS
    return this.#writer.write(definition, payload)
  }

  hear(event: Envelope): Verdict {
    return this.bench.foldOne(event)
  }

  tell<P, I extends Payload>(definition: EventDefinition<P, I>, payload: I): Verdict {
    return this.hear(this.write(definition, payload))
  }

  /** The one row with this key, or undefined. */
  row<C extends Columns>(table: Table<C>, ...key: KeyPart[]): RowOf<C> | undefined {
    return this.rows(table).find((row) => key.every((part, index) => row[itemAt(table.key, index)] === part))
  }

  rows<C extends Columns>(table: Table<C>): RowOf<C>[] {
    // The bench keeps the rows of a table under its name.
    return (this.bench.rows()[table.name] ?? []) as RowOf<C>[]
  }

  /** A run of these tasks, each with what it depends on: requested and planned. */
  run(
    name: string,
    plan: Record<string, readonly string[]>,
    options: { attempts?: number; source?: SourceRef; task?: Payload } = {},
  ): RunStory {
    const run = new RunStory(this, name, options.source)
    run.requested()
    run.planned(plan, options.attempts, options.task)
    return run
  }
}

const SECRET = { id: 'secret-1', value: 'correct horse battery staple' }

export class RunStory {
  readonly #story: Story
  readonly runKey: string
  readonly runId: string
  readonly #source: SourceRef

  constructor(story: Story, name: string, source: SourceRef = { type: 'manual', user_id: 'ada', request_id: name }) {
    this.#story = story
    this.#source = source
    this.runKey = `${runKeyPrefixes(source).at(-1)}${name}`
    this.runId = runIdFromRunKey(TENANT, WORKSPACE, this.runKey, SECRET)
  }

  get row(): RunRow | undefined {
    return this.#story.row(runs, this.runId)
  }

  task(key: string): TaskRow | undefined {
    return this.#story.row(tasks, this.runId, key)
  }

  /** Every task with its state. */
  get states(): Record<string, string> {
    const mine = this.#story.rows(tasks).filter((task) => task.run_id === this.runId)
    return Object.fromEntries(mine.map((task) => [task.task_key, task.state]))
  }

  attempt(task_key: string, attempt = 1) {
    return { run_id: this.runId, task_key, attempt, attempt_id: attemptId(this.runId, task_key, attempt) }
  }

  requested(assets: readonly string[] = ['orders'], partitions: readonly string[] | null = null): Verdict {
    return this.#story.tell(RunRequested, {
      run_key: this.runKey,
      run_id: this.runId,
      secret_id: SECRET.id,
      request_fingerprint: requestFingerprint({ asset_selection: assets, partition_selection: partitions }),
      asset_selection: [...assets],
      partition_selection: partitions && [...partitions],
      trigger_source_ref: this.#source,
    })
  }

  /** `more` is what else the plan says of every task. */
  planned(plan: Record<string, readonly string[]>, max_attempts = 1, more: Payload = {}): Verdict {
    const planned = Object.entries(plan).map(([task_key, upstream]) => ({
      task_key,
      asset_key: task_key,
      depends_on: [...upstream],
      max_attempts,
      ...more,
    }))
    return this.#story.tell(PlanCreated, { run_id: this.runId, plan_id: 'plan', part: 0, parts: 1, tasks: planned })
  }

  dispatched(task: string, attempt = 1): Verdict {
    return this.#story.tell(DispatchRequested, this.attempt(task, attempt))
  }

  started(task: string, attempt = 1, worker_id = 'worker-1'): Verdict {
    return this.#story.tell(TaskStarted, { ...this.attempt(task, attempt), worker_id, started_at: this.#story.time() })
  }

  succeeded(task: string, attempt = 1): Verdict {
    return this.#finished(task, attempt, { outcome: 'SUCCEEDED', materialization_id: `${task}-${attempt}` })
  }

  /** Failed, and may be tried again. */
  failed(task: string, attempt = 1): Verdict {
    return this.#finished(task, attempt, { outcome: 'FAILED', error_message: 'it did not work' })
  }

  /** Failed for good. */
  gaveUp(task: string, attempt = 1): Verdict {
    return this.#finished(task, attempt, { outcome: 'FAILED', retryable: false, error_message: 'it will never work' })
  }

  /** Dispatched and succeeded. */
  done(...names: string[]): void {
    for (const task of names) {
      this.dispatched(task)
      this.succeeded(task)
    }
  }

  retryDue(task_key: string, attempt = 1): Verdict {
    return this.#story.tell(TimerFired, {
      timer_type: 'RETRY',
      run_id: this.runId,
      task_key,
      attempt,
      fire_at: this.#story.time(),
    })
  }

  cancelled(requested_by = 'ada'): Verdict {
    return this.#story.tell(RunCancelRequested, { run_id: this.runId, requested_by })
  }

  /** Another run was making its partition. */
  skipped(task_key: string, overlap_run_id: string): Verdict {
    return this.#story.tell(TaskSkipped, { run_id: this.runId, task_key, overlap_run_id })
  }

  #finished(task: string, attempt: number, outcome: ReportedEnd): Verdict {
    return this.#story.tell(TaskFinished, { ...this.attempt(task, attempt), ...outcome, completed_at: this.#story.time() })
  }
}

type Payload = Readonly<Record<string, unknown>>

interface ReportedEnd {
  readonly outcome: 'SUCCEEDED' | 'FAILED'
  readonly retryable?: boolean
  readonly error_message?: string
  readonly materialization_id?: string
}
