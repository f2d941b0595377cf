import { RunRequested } from '../../domain/runs/run-requested.event.ts'
import { type RunTrace, spanOf, traceOf, traceOfRun } from '../../domain/runs/run-trace.ts'
import { type RunRow, runs } from '../../domain/runs/runs.table.ts'
import { evaluationOf } from '../../domain/runs/trigger.ts'
import { scheduleDefinitions } from '../../domain/schedules/schedule-definitions.table.ts'
import { ScheduleTicked } from '../../domain/schedules/schedule-ticked.event.ts'
import { evalIdOf } from '../../domain/sensors/evaluation-ids.ts'
import { sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import { SensorEvaluated } from '../../domain/sensors/sensor-evaluated.event.ts'
import { taskAttempts } from '../../domain/tasks/task-attempts.table.ts'
import { isTaskOver, type TaskRow, tasks } from '../../domain/tasks/tasks.table.ts'
import type { OnRecorded } from '../../engine/loop/folded-events.ts'
import type { Reactor } from '../../engine/loop/reactions.ts'
import type { Attributes, TraceSpan } from '../../lib/otlp/span.ts'
import { toMs } from '../../lib/time.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { EventDefinition } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import type { AnyRow, Row } from '../../model/table.ts'
import { reactor } from '../leader/reactor.ts'

export interface RecordedSpansOptions {
  readonly rows: () => Rows
  readonly now: () => number
  readonly isSampled: (trace: RunTrace) => boolean
  readonly add: (span: TraceSpan) => void
}

/** Collectors refuse or cut what is longer, and the record has all of it. */
const MAX_TEXT = 1_024

// biome-ignore lint/suspicious/noExplicitAny: payloads were checked when their events were made, and each is given to the function of its type.
type Show = (payload: any, event: Envelope, foldedAt: number) => void

/**
 * Makes spans of what is on record: tick, evaluation or request → run → task → attempt. A span is made when its end is durable, from the
 * row that has both ends, so that nothing is held for a span that is open, and an attempt that ends after a restart has its span too.
 */
export class RecordedSpans {
  readonly #options: RecordedSpansOptions
  readonly #shows = new Map<string, Show>()
  /** Rows whose span was made, or whose end an earlier process has recorded. */
  readonly #told = new WeakSet<AnyRow>()
  /** The id of the newest event of this process that is durable. */
  #durableUpTo = ''

  constructor(options: RecordedSpansOptions) {
    this.#options = options
    this.#on(ScheduleTicked, (tick, event, foldedAt) => {
      if (tick.status === 'skipped') return
      const at = toMs(event.timestamp)
      // The delay of a tick that was on time is part of it. One that was caught up began when it was caught up.
      const isOnTime = tick.cause === 'cron' && tick.requested_by == null
      this.#trigger(event, foldedAt, {
        id: tick.tick_id,
        name: 'schedule tick',
        kind: 'internal',
        startMs: isOnTime ? Math.min(at, toMs(tick.scheduled_for)) : at,
        attributes: {
          'servo.schedule':
            this.#options.rows().hot(scheduleDefinitions).get(tick.schedule_id)?.schedule_name ?? tick.schedule_id,
          'servo.scheduled_for': tick.scheduled_for,
          'servo.status': tick.status,
        },
        ...(tick.status === 'failed' && { error: tick.reason ?? '' }),
      })
    })
    this.#on(SensorEvaluated, (evaluation, event, foldedAt) => {
      const { sensor_id, trigger_source: source, begun, status, duration_ms, error } = evaluation
      if (status === 'no_new_data') return
      this.#trigger(event, foldedAt, {
        id: evalIdOf(sensor_id, source, begun),
        name: 'sensor evaluation',
        kind: source.source === 'push' ? 'consumer' : 'internal',
        startMs: toMs(event.timestamp) - (duration_ms ?? 0),
        attributes: {
          'servo.sensor': this.#options.rows().hot(sensorDefinitions).get(sensor_id)?.sensor_name ?? sensor_id,
          'servo.trigger': source.source,
          'servo.status': status,
          ...(source.source === 'push' && { 'messaging.message.id': source.message_id }),
        },
        ...(status === 'error' && { error: error ?? '' }),
      })
    })
    this.#on(RunRequested, ({ run_id, trigger_source_ref: source }, event, foldedAt) => {
      // A tick or an evaluation has a span of its own.
      if (source.type === 'schedule' || evaluationOf(source) !== undefined) return
      this.#trigger(event, foldedAt, {
        id: run_id,
        name: source.type === 'backfill' ? 'backfill chunk' : 'run request',
        kind: source.type === 'backfill' ? 'internal' : 'server',
        startMs: toMs(event.timestamp),
        attributes: {
          'servo.run_id': run_id,
          'servo.trigger': source.type,
          ...(source.type === 'backfill' && { 'servo.backfill_id': source.backfill_id, 'servo.chunk': source.chunk_index }),
          ...(source.type === 'rerun' && { 'servo.rerun_of': source.run_id }),
        },
      })
    })
  }

  get reactors(): readonly Reactor[] {
    return [
      reactor(runs, (run) => this.#runChanged(run)),
      reactor(tasks, (task) => this.#taskChanged(task)),
      reactor(taskAttempts, (attempt) => this.#attemptChanged(attempt)),
    ]
  }

  /** Call when the state was read: what had ended by then has been shown. */
  opened(rows: Rows): void {
    for (const run of rows.hot(runs).all()) if (run.finished_at !== null) this.#told.add(run)
    for (const task of rows.hot(tasks).all()) if (isTaskOver(task.state)) this.#told.add(task)
    for (const attempt of rows.hot(taskAttempts).all()) if (attempt.finished_at !== null) this.#told.add(attempt)
  }

  readonly recorded: OnRecorded = (event, verdict, foldedAt) => {
    if (event.event_id > this.#durableUpTo) this.#durableUpTo = event.event_id
    if (verdict.kind === 'applied') this.#shows.get(event.event_type)?.(event.payload, event, foldedAt)
  }

  #on<P>(definition: EventDefinition<P>, show: (payload: P, event: Envelope, foldedAt: number) => void): void {
    this.#shows.set(definition.type, show)
  }

  /** What began a trace, with the fold and the append of its event. */
  #trigger(
    event: Envelope,
    foldedAt: number,
    trigger: Pick<TraceSpan, 'name' | 'kind' | 'startMs' | 'attributes'> & { readonly id: string; readonly error?: string },
  ): void {
    const { id, error, ...facts } = trigger
    const trace = traceOf(id, event.traceparent)
    if (!this.#options.isSampled(trace)) return
    const { traceId, caller, triggerSpan } = trace
    const [at, durableAt] = [toMs(event.timestamp), this.#options.now()]
    this.#options.add({
      ...facts,
      traceId,
      spanId: triggerSpan,
      parentSpanId: caller?.spanId,
      endMs: Math.max(facts.startMs, durableAt),
      ...statusOf(error),
    })
    const parts = { fold: [at, foldedAt], append: [foldedAt, durableAt] } as const
    for (const [name, [startMs, endMs]] of Object.entries(parts))
      this.#options.add({
        traceId,
        spanId: spanOf(`${name}:${event.event_id}`),
        parentSpanId: triggerSpan,
        name,
        kind: 'internal',
        startMs,
        endMs: Math.max(startMs, endMs),
        attributes: { 'servo.event_id': event.event_id, 'servo.event_type': event.event_type },
        outcome: 'unset',
      })
  }

  #runChanged(run: Readonly<RunRow>): void {
    if (run.finished_at === null || !this.#isNews(run)) return
    const trace = this.#sampled(run)
    if (trace === undefined) return
    this.#options.add({
      traceId: trace.traceId,
      spanId: spanOf(run.run_id),
      parentSpanId: trace.triggerSpan,
      name: 'run',
      kind: 'internal',
      startMs: run.requested_at,
      endMs: Math.max(run.requested_at, run.finished_at),
      attributes: {
        'servo.run_id': run.run_id,
        'servo.trigger': run.trigger_type,
        'servo.state': run.state,
        'servo.tasks': run.tasks_total,
        'servo.tasks_failed': run.tasks_failed,
      },
      ...statusOf(run.state === 'FAILED' ? (run.error ?? `${run.tasks_failed} of ${run.tasks_total} tasks failed`) : undefined),
    })
  }

  /** A task that no worker ever had took no time. */
  #taskChanged(task: Readonly<TaskRow>): void {
    const { run_id, task_key, finished_at } = task
    if (finished_at === null || !isTaskOver(task.state) || !this.#isNews(task)) return
    const rows = this.#options.rows()
    const first = rows.hot(taskAttempts).get(run_id, task_key, 1)
    const trace = this.#sampled(rows.hot(runs).get(run_id))
    if (first === undefined || trace === undefined) return
    this.#options.add({
      traceId: trace.traceId,
      spanId: spanOfTask(task),
      parentSpanId: spanOf(run_id),
      name: `task ${task.asset_key ?? task_key}`,
      kind: 'internal',
      startMs: first.dispatched_at,
      endMs: Math.max(first.dispatched_at, finished_at),
      attributes: { ...placeOf(task), 'servo.state': task.state, 'servo.attempts': task.attempt },
      ...statusOf(task.state === 'FAILED' ? (task.error_message ?? '') : undefined),
    })
  }

  #attemptChanged(attempt: Readonly<Row<typeof taskAttempts>>): void {
    const { run_id, task_key, finished_at, dispatched_at, started_at } = attempt
    if (finished_at === null || !this.#isNews(attempt)) return
    const rows = this.#options.rows()
    const task = rows.hot(tasks).get(run_id, task_key)
    const trace = this.#sampled(rows.hot(runs).get(run_id))
    if (task === undefined || trace === undefined) return
    this.#options.add({
      traceId: trace.traceId,
      spanId: spanOf(attempt.attempt_id),
      parentSpanId: spanOfTask(attempt),
      name: `attempt ${task.asset_key ?? task_key}`,
      kind: 'consumer',
      startMs: dispatched_at,
      endMs: Math.max(dispatched_at, finished_at),
      attributes: {
        ...placeOf(task),
        'servo.attempt': attempt.attempt,
        'servo.attempt_id': attempt.attempt_id,
        ...(attempt.worker_id !== null && { 'servo.worker_id': attempt.worker_id }),
        ...(attempt.outcome !== null && { 'servo.outcome': attempt.outcome }),
        ...(attempt.error_category !== null && { 'error.type': attempt.error_category }),
      },
      events: started_at === null ? [] : [{ name: 'started', atMs: started_at }],
      ...statusOf(attempt.outcome === 'FAILED' ? (attempt.error_message ?? '') : undefined),
    })
  }

  #sampled(run: Readonly<RunRow> | undefined): RunTrace | undefined {
    const trace = run && traceOfRun(run)
    return trace !== undefined && this.#options.isSampled(trace) ? trace : undefined
  }

  #isNews(row: Readonly<AnyRow> & { readonly row_version: string }): boolean {
    // Rows are ahead of the ledger. This one is shown again when the event that changed it is durable.
    if (row.row_version > this.#durableUpTo || this.#told.has(row)) return false
    this.#told.add(row)
    return true
  }
}

const spanOfTask = ({ run_id, task_key }: { readonly run_id: string; readonly task_key: string }): string =>
  spanOf(`${run_id}:${task_key}`)

const placeOf = ({ run_id, asset_key, task_key, partition_key }: Readonly<TaskRow>): Attributes => ({
  'servo.run_id': run_id,
  'servo.asset': asset_key ?? task_key,
  ...(partition_key !== null && { 'servo.partition': partition_key.slice(0, MAX_TEXT) }),
})

const statusOf = (error: string | undefined): Pick<TraceSpan, 'outcome' | 'message'> =>
  error === undefined ? { outcome: 'unset' } : { outcome: 'error', message: error.slice(0, MAX_TEXT).toWellFormed() }
