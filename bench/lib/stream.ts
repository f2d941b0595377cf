import { DispatchEnqueued } from '../../src/domain/dispatch/dispatch-enqueued.event.ts'
import { attemptId } from '../../src/domain/dispatch/dispatch-ids.ts'
import { DispatchRequested } from '../../src/domain/dispatch/dispatch-requested.event.ts'
import { RunCancelRequested } from '../../src/domain/runs/run-cancel-requested.event.ts'
import { requestFingerprint, runIdFromRunKey } from '../../src/domain/runs/run-ids.ts'
import { RunRequested } from '../../src/domain/runs/run-requested.event.ts'
import { PlanCreated } from '../../src/domain/tasks/plan-created.event.ts'
import { TaskFinished } from '../../src/domain/tasks/task-finished.event.ts'
import { TaskHeartbeat } from '../../src/domain/tasks/task-heartbeat.event.ts'
import { TaskStarted } from '../../src/domain/tasks/task-started.event.ts'
import type { Segment } from '../../src/engine/ledger/segment.ts'
import { toIso } from '../../src/lib/time.ts'
import { type UlidSource, ulidSource } from '../../src/lib/ulid.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import type { EventDefinition } from '../../src/model/event.ts'
import { seeded } from './random.ts'

export const scope = { tenant_id: 'acme', workspace_id: 'analytics' }
export const SECRET = { id: 'secret-1', value: 'correct horse battery staple' }
const START_MS = Date.UTC(2025, 0, 15, 10)

/** Tasks per layer of the graph; each waits for two of the layer before, so that a run of 100 tasks has 180 edges. */
const LAYER_TASKS = 10
const UPSTREAMS = 2

export interface StreamOptions {
  /** With none, a run is cancelled as soon as it was requested: the cheapest way to many run keys. */
  readonly tasksPerRun: number
  /** Runs going on at the same time: their events alternate at random. */
  readonly liveRuns: number
  /** Partitions that runs go over again and again; without a number each run has a partition of its own. */
  readonly partitions?: number
  /** Assets that runs take in turn; without a number all runs have the same. */
  readonly assets?: number
  /** One run in so many fails; without a number none does. */
  readonly failEvery?: number
  readonly eventsPerSegment?: number
  /** How much time passes from event to event. */
  readonly msPerEvent?: number
}

/**
 * The ledger of a busy workspace, as much of it as anybody wants: runs are requested, planned, and their tasks
 * dispatched, enqueued, started, alive and finished, layer by layer. Always the same for the same options.
 */
export class Stream {
  now = START_MS
  finishedRuns = 0
  readonly #options: StreamOptions
  readonly #random = seeded(1)
  readonly #mint: UlidSource
  readonly #live: Iterator<Envelope>[] = []
  readonly #eventsPerSegment: number
  #started = 0

  constructor(options: StreamOptions) {
    this.#options = options
    this.#eventsPerSegment = options.eventsPerSegment ?? 100
    this.#mint = ulidSource(
      () => Math.floor(this.now),
      (length) => Uint8Array.from({ length }, () => Math.floor(this.#random() * 256)),
    )
  }

  get finishedTasks(): number {
    return this.finishedRuns * Math.max(1, this.#options.tasksPerRun)
  }

  runKey(index: number): string {
    return `manual:${String(index).padStart(10, '0')}`
  }

  segments(events: number): Segment[] {
    const segments: Segment[] = []
    for (let left = events; left > 0; left -= this.#eventsPerSegment) {
      const batch = Array.from({ length: Math.min(left, this.#eventsPerSegment) }, () => this.#next())
      // Through JSON, as events come out of a ledger: a text put together of pieces costs a fold other memory and time.
      segments.push({ ulid: this.#mint(), events: JSON.parse(JSON.stringify(batch)) as Envelope[] })
    }
    return segments
  }

  #next(): Envelope {
    while (this.#live.length < this.#options.liveRuns) this.#live.push(this.#run(this.#started++))
    this.now += this.#options.msPerEvent ?? 1
    const at = Math.floor(this.#random() * this.#live.length)
    const step = (this.#live[at] as Iterator<Envelope>).next()
    if (!step.done) return step.value
    this.#live.splice(at, 1)
    this.finishedRuns += 1
    return this.#next()
  }

  *#run(index: number): Generator<Envelope> {
    const { tasksPerRun, partitions, assets, failEvery } = this.#options
    const firstAsset = assets === undefined ? 0 : index % assets
    const outcome = failEvery !== undefined && index % failEvery === 0 ? 'FAILED' : 'SUCCEEDED'
    const runKey = this.runKey(index)
    const run_id = runIdFromRunKey(scope.tenant_id, scope.workspace_id, runKey, SECRET)
    const partition = partitionKey(partitions === undefined ? index : index % partitions)
    const selection = { asset_selection: ['marts/*'], partition_selection: [partition], labels: { team: 'data' } }
    yield this.#envelope(RunRequested, {
      run_key: runKey,
      run_id,
      secret_id: SECRET.id,
      request_fingerprint: requestFingerprint(selection),
      ...selection,
      trigger_source_ref: { type: 'manual', user_id: 'ada', request_id: String(index) },
    })
    if (tasksPerRun === 0) {
      yield this.#envelope(RunCancelRequested, { run_id, requested_by: 'ada' })
      return
    }
    const assetKey = (task: number): string => `marts/orders_${String(firstAsset + task).padStart(3, '0')}`
    const taskKey = (task: number): string => `${assetKey(task)}@${partition}`
    const tasks = Array.from({ length: tasksPerRun }, (_, task) => ({
      task_key: taskKey(task),
      asset_key: assetKey(task),
      partition_key: partition,
      depends_on: upstreams(task).map(taskKey),
      max_attempts: 3,
    }))
    yield this.#envelope(PlanCreated, { run_id, plan_id: `plan-${index}`, graph_version: 'graph-7', part: 0, parts: 1, tasks })
    for (let layer = 0; layer < tasksPerRun; layer += LAYER_TASKS) {
      const facts = tasks
        .slice(layer, layer + LAYER_TASKS)
        .map(({ task_key }) => ({ run_id, task_key, attempt: 1, attempt_id: attemptId(run_id, task_key, 1) }))
      const worker_id = `worker-${index % 24}`
      for (const fact of facts) yield this.#envelope(DispatchRequested, { ...fact, worker_queue: 'default' })
      for (const { attempt_id: _, ...place } of facts) yield this.#envelope(DispatchEnqueued, { ...place, status: 'CREATED' })
      const started_at = this.#iso()
      for (const fact of facts) yield this.#envelope(TaskStarted, { ...fact, worker_id, started_at })
      for (const fact of facts) yield this.#envelope(TaskHeartbeat, { ...fact, heartbeat_at: this.#iso() })
      for (const fact of facts) {
        yield this.#envelope(TaskFinished, {
          ...fact,
          outcome,
          worker_id,
          started_at,
          completed_at: this.#iso(),
          ...(outcome === 'SUCCEEDED'
            ? { retryable: true, materialization_id: `mat:${fact.attempt_id}` }
            : { retryable: false, error_category: 'user', error_message: 'a file was not there' }),
          code_version: 'git:4f2a9c1',
          output: { rows: 10_000 + layer, bytes: 1_048_576 },
        })
      }
    }
  }

  #iso(): string {
    return toIso(Math.floor(this.now))
  }

  #envelope(definition: EventDefinition, payload: Record<string, unknown>): Envelope {
    return {
      event_id: this.#mint(),
      event_type: definition.type,
      event_version: definition.version,
      timestamp: this.#iso(),
      source: 'servo/bench',
      tenant_id: scope.tenant_id,
      workspace_id: scope.workspace_id,
      idempotency_key: definition.idempotencyKey(payload),
      payload,
    }
  }
}

function upstreams(task: number): number[] {
  const layer = Math.floor(task / LAYER_TASKS)
  if (layer === 0) return []
  return Array.from({ length: UPSTREAMS }, (_, up) => (layer - 1) * LAYER_TASKS + ((task + up) % LAYER_TASKS))
}

function partitionKey(index: number): string {
  return `2025-${String(Math.floor(index / 28) + 1).padStart(5, '0')}-${String((index % 28) + 1).padStart(2, '0')}`
}
