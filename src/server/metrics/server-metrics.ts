import { runs } from '../../domain/runs/runs.table.ts'
import { isTaskOver, type TaskState, tasks } from '../../domain/tasks/tasks.table.ts'
import type { LoopOptions } from '../../engine/loop/loop-options.ts'
import type { Published, PublisherOptions } from '../../engine/publish/publisher.ts'
import { MetricRegistry } from '../../lib/metrics.ts'
import { SECOND_MS } from '../../lib/time.ts'
import type { HeldLease } from '../../ports/lease.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { Orchestrator } from '../leader/orchestrator.ts'
import { countedStore, storeRequests } from './counted-store.ts'
import { RecordedFacts } from './recorded-facts.ts'

/** Around the 10 s within which 95 of 100 publishes should show what happened. */
const COMPACTION_LAG_SEC = [0.25, 0.5, 1, 1.5, 2, 5, 10, 20, 60, 300]
/** Around the 200 ms within which 95 of 100 should be answered. */
const FRESH_READ_SEC = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10]
const PUBLISH_SEC = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

const WAITING_ROUTE = /\/(?:follow|logs)$/
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const WAITING = ['planned', 'blocked', 'ready', 'dispatched', 'running', 'retry_wait'] as const satisfies Lowercase<TaskState>[]

/**
 * Everything that a server counts, under the names that `/metrics` has. Label values are of small, fixed sets: statuses, routes, kinds of
 * requests. Nothing that users choose becomes one, because each value is a series that Prometheus keeps.
 */
export class ServerMetrics {
  readonly registry = new MetricRegistry()
  readonly facts = new RecordedFacts(this.registry)
  readonly #lag = this.registry.histogram(
    'compaction_lag_seconds',
    'Time from the moment at which the oldest event of a publish was durable until the tables showed it.',
    COMPACTION_LAG_SEC,
  )
  readonly #publishes = this.registry.counters(
    'servo_publishes_total',
    'Publishes of tables.',
    ['status'],
    [['succeeded'], ['failed']],
  )
  readonly #publishing = this.registry.histogram('servo_publish_seconds', 'How long publishes took.', PUBLISH_SEC)
  readonly #sent = this.registry.counters(
    'servo_store_requests_total',
    'Requests to the object store, by kind. A listing counts once.',
    ['kind'],
    storeRequests.map((kind) => [kind]),
  )
  readonly #failed = this.registry.counters(
    'servo_store_errors_total',
    'Requests to the object store that failed.',
    ['kind'],
    storeRequests.map((kind) => [kind]),
  )
  readonly #answers = this.registry.counters(
    'servo_http_requests_total',
    'Requests that were answered, by the template of their route.',
    ['method', 'route', 'status'],
  )

  readonly #freshRead = this.registry.histogram(
    'servo_fresh_read_seconds',
    'How long questions to the API took. Every answer has all that was durable when it was asked.',
    FRESH_READ_SEC,
  )
  readonly #alerts = this.registry.counters(
    'servo_alerts_total',
    'Tries to send an alert, by what became of it: it arrived, is sent again later, or is given up.',
    ['status'],
    [['delivered'], ['pending'], ['failed']],
  )
  readonly #exported = this.registry.counter('servo_spans_exported_total', 'Spans that a trace collector took.')
  readonly #dropped = this.registry.counters(
    'servo_spans_dropped_total',
    'Spans that were dropped: too many were waiting, or the collector did not take them.',
    ['reason'],
    [['queue_full'], ['not_taken']],
  )

  /** What an orchestrator tells of. */
  readonly measure: Pick<LoopOptions, 'onRecorded'> & Pick<PublisherOptions, 'onPublished'> = {
    onRecorded: this.facts.recorded,
    onPublished: (published) => this.#published(published),
  }

  counting(store: ObjectStore): ObjectStore {
    return countedStore(store, this.#sent, this.#failed)
  }

  /** Call with each answer; `route` is a template such as `/api/v1/orchestration/runs/:run_id`. */
  answered(method: string, route: string, status: number, ms: number): void {
    this.#answers.of(METHODS.has(method) ? method : 'other', route, String(status)).add()
    // Those that wait for something to happen take as long as that takes.
    if (method === 'GET' && status < 400 && route.startsWith('/api/') && !WAITING_ROUTE.test(route))
      this.#freshRead.observe(ms / SECOND_MS)
  }

  alertTried(status: 'pending' | 'delivered' | 'failed'): void {
    this.#alerts.of(status).add()
  }

  spansExported(spans: number): void {
    this.#exported.add(spans)
  }

  spansDropped(spans: number, reason: 'queue_full' | 'not_taken'): void {
    this.#dropped.of(reason).add(spans)
  }

  /** Adds what is read from the leader itself when somebody asks. */
  read(orchestrator: Orchestrator, lease: HeldLease): void {
    const { registry } = this
    // While the state is opened again, memory may have facts that were never written.
    const compactor = () => (orchestrator.phase === 'leading' ? orchestrator.loop.compactor : undefined)
    registry.reading(
      'gauge',
      'servo_leading',
      'Whether this process leads: 1, or 0 while it recovers or has been replaced.',
      () => (orchestrator.phase === 'leading' && lease.isHeld ? 1 : 0),
    )
    registry.reading('gauge', 'servo_lease_number', 'The number of the claim by which this process leads.', () => lease.number)
    registry.reading('gauge', 'servo_epoch', 'The epoch in which it publishes.', () => compactor()?.manifest.epoch)
    registry.readings('servo_runs', 'Runs that have not ended.', 'state', () => {
      const counts = { pending: 0, running: 0 }
      for (const { state } of compactor()?.state.hot(runs).all() ?? []) {
        if (state === 'PENDING') counts.pending += 1
        if (state === 'RUNNING') counts.running += 1
      }
      return Object.entries(counts)
    })
    registry.readings(
      'servo_tasks',
      'Tasks that have not ended. Those that are ready wait for room: they are the depth of the queue.',
      'state',
      () => {
        const counts = new Map<string, number>(WAITING.map((state) => [state, 0]))
        for (const { state } of compactor()?.state.hot(tasks).all() ?? []) {
          if (isTaskOver(state)) continue
          const label = state.toLowerCase()
          counts.set(label, (counts.get(label) ?? 0) + 1)
        }
        return counts
      },
    )
    registry.reading(
      'gauge',
      'servo_local_attempts',
      'Attempts that workers of this process have now.',
      () => orchestrator.running,
    )
    registry.reading(
      'gauge',
      'servo_unpublished_events',
      'Events that are durable and that no table shows yet.',
      () => compactor()?.fold.unpublishedEvents,
    )
    registry.reading('gauge', 'servo_rows_in_memory', 'Rows that are in memory.', () => compactor()?.state.size())
  }

  #published({ ok, ms, lagMs }: Published): void {
    this.#publishes.of(ok ? 'succeeded' : 'failed').add()
    if (!ok) return
    this.#publishing.observe(ms / SECOND_MS)
    if (lagMs !== undefined) this.#lag.observe(lagMs / SECOND_MS)
  }
}
