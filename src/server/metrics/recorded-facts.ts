import { evalStatuses, tickStatuses } from '../../contract/automation-statuses.ts'
import { BackfillChunkPlanned } from '../../domain/backfills/backfill-chunk-planned.event.ts'
import { RunRequested } from '../../domain/runs/run-requested.event.ts'
import { type RunRow, runs } from '../../domain/runs/runs.table.ts'
import { triggerTypes } from '../../domain/runs/trigger.ts'
import { ScheduleTicked } from '../../domain/schedules/schedule-ticked.event.ts'
import { ScheduleTicksSkipped } from '../../domain/schedules/schedule-ticks-skipped.event.ts'
import { SensorsPolled } from '../../domain/sensors/sensors-polled.event.ts'
import { outcomes } from '../../domain/tasks/task-attempts.table.ts'
import { TaskFinished } from '../../domain/tasks/task-finished.event.ts'
import type { Reactor } from '../../engine/loop/reactions.ts'
import type { MetricRegistry } from '../../lib/metrics.ts'
import { SECOND_MS, toMs } from '../../lib/time.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { EventDefinition, Verdict } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { reactor } from '../leader/reactor.ts'
import type { RecordedEvaluation } from '../leader/sensors/evaluations.ts'

/** Around the 5 s within which 95 of 100 ticks should be evaluated. */
const TICK_DELAY_SEC = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
/** Around the 2 s of messages. */
const PUSH_LATENCY_SEC = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60]

const chunkStatuses = ['planned', 'running', 'succeeded', 'failed', 'skipped', 'cancelled'] as const
const endedRuns = ['succeeded', 'failed', 'cancelled'] as const

/** The labels of metrics are older than some statuses on record. */
const evalLabels: Readonly<Record<(typeof evalStatuses)[number], string>> = {
  triggered: 'triggered',
  no_new_data: 'no_data',
  error: 'error',
  skipped_stale_cursor: 'skipped_stale',
  skipped_duplicate: 'skipped_duplicate',
}

// biome-ignore lint/suspicious/noExplicitAny: payloads were checked when their events were made, and each is given to the count of its type.
type Count = (payload: any, event: Envelope) => void

/**
 * Counts what is on record: ticks, evaluations, chunks, requests, ends of attempts and runs. Each fact is counted once, by the process that
 * wrote it, when it is durable; what another process wrote, or an earlier start, is not counted here.
 */
export class RecordedFacts {
  readonly #ticks
  readonly #tickDelay
  readonly #evals
  readonly #pushLatency
  readonly #chunks
  readonly #requests
  readonly #conflicts
  readonly #attempts
  readonly #runs
  readonly #counts = new Map<string, Count>()
  /** Runs that have not ended, each with whether it has begun. */
  readonly #unfinished = new Map<string, boolean>()
  /** The id of the newest event of this process that is durable. */
  #durableUpTo = ''

  constructor(registry: MetricRegistry) {
    this.#ticks = registry.counters(
      'schedule_ticks_total',
      'Ticks of schedules, by what became of them.',
      ['status'],
      tickStatuses.map((status) => [status]),
    )
    this.#tickDelay = registry.histogram(
      'schedule_tick_delay_seconds',
      'Time from the moment of a tick to its evaluation. Ticks that were caught up or requested by a user do not count.',
      TICK_DELAY_SEC,
    )
    this.#evals = registry.counters(
      'sensor_evals_total',
      'Evaluations of sensors. Polls that found nothing are recorded, and counted, every two minutes.',
      ['sensor_type', 'status'],
      ['push', 'poll'].flatMap((type) => evalStatuses.map((status) => [type, evalLabels[status]])),
    )
    this.#pushLatency = registry.histogram(
      'sensor_push_latency_seconds',
      'Time from the publish time of a message, if its sender gives one, to its evaluation.',
      PUSH_LATENCY_SEC,
    )
    this.#chunks = registry.counters(
      'backfill_chunks_total',
      'Chunks of backfills that reached this status.',
      ['status'],
      chunkStatuses.map((status) => [status]),
    )
    this.#requests = registry.counters(
      'run_requests_total',
      'Runs that were requested. The same request again is not another one.',
      ['source'],
      triggerTypes.map((source) => [source]),
    )
    this.#conflicts = registry.counter('run_key_conflicts_total', 'Requests that reused a run key for different work.')
    this.#attempts = registry.counters(
      'servo_attempts_total',
      'Attempts that ended.',
      ['outcome'],
      outcomes.map((outcome) => [outcome.toLowerCase()]),
    )
    this.#runs = registry.counters(
      'servo_runs_total',
      'Runs that ended.',
      ['status'],
      endedRuns.map((status) => [status]),
    )
    this.#on(ScheduleTicked, (tick, { timestamp }) => {
      this.#ticks.of(tick.status).add()
      if (tick.cause === 'cron' && tick.requested_by == null)
        this.#tickDelay.observe(Math.max(0, toMs(timestamp) - toMs(tick.scheduled_for)) / SECOND_MS)
    })
    this.#on(ScheduleTicksSkipped, ({ tick_count }) => this.#ticks.of('skipped').add(tick_count))
    this.#on(SensorsPolled, ({ polled }) => {
      for (const { poll_count } of polled) this.#evals.of('poll', evalLabels.no_new_data).add(poll_count)
    })
    this.#on(BackfillChunkPlanned, ({ run }) => {
      this.#chunks.of('planned').add()
      if (run == null) this.#chunks.of('skipped').add()
    })
    this.#on(RunRequested, ({ run_id, trigger_source_ref: source }) => {
      this.#requests.of(source.type).add()
      this.#unfinished.set(run_id, false)
    })
    this.#on(TaskFinished, ({ outcome }) => this.#attempts.of(outcome.toLowerCase()).add())
  }

  get reactors(): readonly Reactor[] {
    return [reactor(runs, (run) => this.#runChanged(run))]
  }

  /** Call when the state was read: which runs have not ended. */
  opened(rows: Rows): void {
    for (const { run_id, finished_at, started_at } of rows.hot(runs).all())
      if (finished_at === null) this.#unfinished.set(run_id, started_at !== null)
  }

  /** Call with each event that is durable, and the verdict on it. */
  readonly recorded = (event: Envelope, verdict: Verdict): void => {
    if (event.event_id > this.#durableUpTo) this.#durableUpTo = event.event_id
    if (verdict.kind === 'applied') this.#counts.get(event.event_type)?.(event.payload, event)
    else if (verdict.kind === 'ignored' && verdict.reason === 'run_key_conflict') this.#conflicts.add()
  }

  /** Call with each evaluation that is durable. */
  evaluated({ evaluation, published_at }: RecordedEvaluation): void {
    const { trigger_source, status, evaluated_at } = evaluation
    this.#evals.of(trigger_source, evalLabels[status]).add()
    if (published_at != null) this.#pushLatency.observe(Math.max(0, evaluated_at - toMs(published_at)) / SECOND_MS)
  }

  #on<P>(definition: EventDefinition<P>, count: (payload: P, event: Envelope) => void): void {
    this.#counts.set(definition.type, count)
  }

  #runChanged(run: Readonly<RunRow>): void {
    // Rows are ahead of the ledger. This one is shown again when the event that changed it is durable.
    if (run.row_version > this.#durableUpTo) return
    const hadBegun = this.#unfinished.get(run.run_id)
    if (hadBegun === undefined) return
    const isChunk = run.trigger_type === 'backfill'
    const hasBegun = run.started_at !== null
    if (isChunk && hasBegun && !hadBegun) this.#chunks.of('running').add()
    if (run.finished_at === null) {
      this.#unfinished.set(run.run_id, hasBegun)
      return
    }
    this.#unfinished.delete(run.run_id)
    const status = run.state.toLowerCase()
    this.#runs.of(status).add()
    if (isChunk) this.#chunks.of(status).add()
  }
}
