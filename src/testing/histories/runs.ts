import { attemptId } from '../../domain/dispatch/dispatch-ids.ts'
import { RunCancelRequested } from '../../domain/runs/run-cancel-requested.event.ts'
import { requestFingerprint, runIdFromRunKey } from '../../domain/runs/run-ids.ts'
import { RunRequested } from '../../domain/runs/run-requested.event.ts'
import type { RunState } from '../../domain/runs/runs.table.ts'
import type { SourceRef } from '../../domain/runs/trigger.ts'
import { PlanCreated } from '../../domain/tasks/plan-created.event.ts'
import type { TaskState } from '../../domain/tasks/tasks.table.ts'
import { TimerRequested } from '../../domain/timers/timer-requested.event.ts'
import { toIso } from '../../lib/time.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { RunPlan, TaskPlan } from './plan.ts'
import { taskLife } from './tasks.ts'
import { type Actor, pause, type World } from './world.ts'
import { type SimulatedWriter, TENANT, WORKSPACE } from './writers.ts'

const SECRET = { id: 'secret-1', value: 'correct horse battery staple' }

/** A task as the simulation knows it: what the fold should come to when everything arrives as it happened. */
export interface SimulatedTask {
  readonly key: string
  readonly asset: string | null
  readonly partition: string | null
  readonly upstream: readonly string[]
  readonly plan: TaskPlan
  state: TaskState
  attempt: number
  /** Attempts whose dispatch was asked for before its time. */
  readonly asked: Set<number>
}

const isOver = (task: SimulatedTask): boolean => ['SUCCEEDED', 'FAILED', 'SKIPPED', 'CANCELLED'].includes(task.state)
const inFlight = (task: SimulatedTask): boolean => task.state === 'DISPATCHED' || task.state === 'RUNNING'

/** A run as the simulation knows it. It keeps its own, deliberately naive book: no counters, no ranks, no parking. */
export class SimulatedRun {
  readonly world: World
  readonly plan: RunPlan
  readonly runKey: string
  readonly runId: string
  readonly assets: readonly string[]
  readonly source: SourceRef
  readonly tasks = new Map<string, SimulatedTask>()
  planned = false
  flawed = false
  started = false
  cancelled = false

  constructor(world: World, plan: RunPlan, runKey: string, source: SourceRef) {
    this.world = world
    this.plan = plan
    this.runKey = runKey
    this.source = source
    this.runId = runIdFromRunKey(TENANT, WORKSPACE, runKey, SECRET)
    plan.tasks.forEach((task, index) => {
      const key = `t${index}`
      const upstream = index === 0 ? [] : [...new Set(task.upstream.map((up) => `t${up % index}`))]
      this.tasks.set(key, {
        key,
        // Not every task makes an asset.
        asset: task.asset === 3 ? null : `asset${task.asset}`,
        partition: task.partition === null ? null : `2025-01-${10 + task.partition}`,
        upstream,
        plan: task,
        state: 'PLANNED',
        attempt: 1,
        asked: new Set(),
      })
    })
    this.assets = [...new Set([...this.tasks.values()].flatMap((task) => task.asset ?? [])), 'asset9']
  }

  get fingerprint(): string {
    return requestFingerprint({ asset_selection: this.assets })
  }

  /** The sensor that asked for it, if one did. */
  get asker(): string | undefined {
    return this.source.type === 'sensor' ? this.source.sensor_id : undefined
  }

  get state(): RunState {
    const states = [...this.tasks.values()].map((task) => task.state)
    if (this.flawed) return 'FAILED'
    if (!this.planned) return this.cancelled ? 'CANCELLED' : 'PENDING'
    if (![...this.tasks.values()].every(isOver)) return this.started ? 'RUNNING' : 'PENDING'
    if (this.cancelled && states.includes('CANCELLED')) return 'CANCELLED'
    if (states.includes('FAILED')) return 'FAILED'
    return states.includes('CANCELLED') ? 'CANCELLED' : 'SUCCEEDED'
  }

  get isOver(): boolean {
    return ['SUCCEEDED', 'FAILED', 'CANCELLED'].includes(this.state)
  }

  request(writer: SimulatedWriter, assets = this.assets, source = this.source): Envelope {
    return writer.write(RunRequested, {
      run_key: this.runKey,
      run_id: this.runId,
      secret_id: SECRET.id,
      request_fingerprint: requestFingerprint({ asset_selection: assets }),
      asset_selection: assets,
      trigger_source_ref: source,
      labels: { team: 'data' },
    })
  }

  attemptFact(task: SimulatedTask, attempt = task.attempt) {
    return { run_id: this.runId, task_key: task.key, attempt, attempt_id: attemptId(this.runId, task.key, attempt) }
  }

  makeReady(task: SimulatedTask): void {
    task.state = 'READY'
    if (task.asked.has(task.attempt)) this.dispatched(task)
  }

  dispatched(task: SimulatedTask): void {
    task.state = 'DISPATCHED'
    this.started = true
  }

  ended(task: SimulatedTask, state: 'SUCCEEDED' | 'FAILED' | 'CANCELLED' | 'SKIPPED'): void {
    task.state = state
    const below = [...this.tasks.values()].filter((other) => other.upstream.includes(task.key))
    for (const other of below) {
      if (isOver(other)) continue
      if (state !== 'SUCCEEDED') this.#giveUp(other, state === 'CANCELLED' ? 'CANCELLED' : 'SKIPPED')
      else if (other.upstream.every((key) => this.tasks.get(key)?.state === 'SUCCEEDED')) {
        this.makeReady(other)
        this.world.spawn(taskLife(this, other))
      }
    }
  }

  #giveUp(task: SimulatedTask, state: 'SKIPPED' | 'CANCELLED'): void {
    task.state = state
    for (const other of this.tasks.values()) if (other.upstream.includes(task.key) && !isOver(other)) this.#giveUp(other, state)
  }

  cancel(): void {
    if (this.isOver || this.cancelled) return
    this.cancelled = true
    for (const task of this.tasks.values()) if (!isOver(task) && !inFlight(task)) task.state = 'CANCELLED'
  }
}

/** Everything that happens in a run once it was requested. */
export function* runLife(run: SimulatedRun): Actor {
  const { world, plan } = run
  if (plan.cancelAfter !== null) world.spawn(cancellation(run, plan.cancelAfter))
  for (const other of plan.askedAgain) world.spawn(requestedAgain(run, other))
  yield* pause(1)
  if (plan.deadline) {
    const fireAt = toIso(world.now + 3_600_000)
    yield world.write(TimerRequested, { timer_type: 'SLA_CHECK', run_id: run.runId, fire_at: fireAt })
  }
  const parts = planParts(run)
  const together = world.roll(2) === 0
  const writer = world.writer()
  for (const [index, part] of parts.entries()) {
    const segment = (together ? parts : [part]).map((payload) => writer.write(PlanCreated, payload))
    if ((together || index === parts.length - 1) && !run.cancelled) begin(run)
    if (index === 0 && plan.plannedTwice) world.spawn(plannedAgain(run))
    yield segment
    if (together) break
  }
}

/** A second planner was slower. Nothing of its plan may get into the first. */
function* plannedAgain({ world, runId }: SimulatedRun): Actor {
  for (const part of [0, 1])
    yield world.write(PlanCreated, { run_id: runId, plan_id: 'plan-b', part, parts: 2, tasks: [{ task_key: `other-${part}` }] })
}

function begin(run: SimulatedRun): void {
  if (run.plan.flaw === 'a part is missing') return
  run.planned = true
  run.flawed = run.plan.flaw !== 'none'
  for (const task of run.tasks.values()) task.state = run.flawed ? 'SKIPPED' : 'BLOCKED'
  if (run.flawed) return
  for (const task of run.tasks.values()) {
    if (task.upstream.length > 0) continue
    run.makeReady(task)
    run.world.spawn(taskLife(run, task))
  }
}

/** The plan in parts, each with its share of the tasks. */
function planParts(run: SimulatedRun): Record<string, unknown>[] {
  const { plan } = run
  const planned: Record<string, unknown>[] = [...run.tasks.values()].map((task) => ({
    task_key: task.key,
    asset_key: task.asset,
    partition_key: task.partition,
    ...(task.partition !== null && { partition_values: { date: task.partition }, ...neighbours(task) }),
    depends_on: plan.spread ? task.upstream.slice(0, 1) : task.upstream,
    max_attempts: task.plan.maxAttempts,
    timeout_sec: task.plan.deadline ? 600 : null,
  }))
  planned.push(...flaws[plan.flaw])
  const size = Math.max(1, Math.ceil(planned.length / plan.parts))
  const shares = Array.from({ length: Math.max(1, Math.ceil(planned.length / size)) }, (_, part) =>
    planned.slice(part * size, (part + 1) * size),
  )
  const parts = shares.length + (plan.flaw === 'a part is missing' ? 1 : 0)
  // The edges of each task are in the part before its own, or in the last; some are there for the second time.
  const edgesIn = (part: number) => {
    const tasks = plan.spread ? (shares[(part + 1) % shares.length] ?? []) : []
    const edges = tasks.map((task) => ({
      task_key: task['task_key'],
      depends_on: run.tasks.get(String(task['task_key']))?.upstream ?? [],
    }))
    return edges.length > 0 ? { edges } : {}
  }
  return shares.map((tasks, part) => ({ run_id: run.runId, plan_id: 'plan-a', part, parts, tasks, ...edgesIn(part) }))
}

/** The partitions of a range; of one dimension, so that they have no values of their own. */
function neighbours({ partition, plan }: SimulatedTask): object {
  if (plan.range === 0 || partition === null) return {}
  return { partition_values: null, partition_keys: partitionsOf({ partition, plan }) }
}

/** Every partition that a task makes. */
export const partitionsOf = ({ partition, plan }: Pick<SimulatedTask, 'partition' | 'plan'>): string[] =>
  partition === null ? [] : Array.from({ length: plan.range + 1 }, (_, i) => `2025-01-${Number(partition.slice(-2)) + i}`)

const flaws: Record<RunPlan['flaw'], readonly Record<string, unknown>[]> = {
  none: [],
  'a part is missing': [],
  'a cycle': [
    { task_key: 'x', depends_on: ['y'] },
    { task_key: 'y', depends_on: ['x', 'x'] },
  ],
  'an unknown upstream': [
    { task_key: 'x', depends_on: ['nobody'] },
    { task_key: 'y', depends_on: ['somebody'] },
  ],
  'a task twice': [
    { task_key: 'x', priority: 1 },
    { task_key: 'y' },
    { task_key: 'y', priority: 3 },
    { task_key: 'x', priority: 2 },
  ],
}

function* cancellation(run: SimulatedRun, steps: number): Actor {
  yield* pause(steps)
  run.cancel()
  yield run.world.write(RunCancelRequested, { run_id: run.runId, requested_by: 'ada' })
  // A second user cancels too.
  if (run.world.roll(3) === 1) yield run.world.write(RunCancelRequested, { run_id: run.runId, requested_by: 'grace' })
}

/** The same key is asked for again: for the same work, which is the same run, or for other work, which is refused. */
function* requestedAgain(run: SimulatedRun, other: boolean): Actor {
  yield* pause(2)
  yield [run.request(run.world.writer(), other ? ['asset7', 'asset8'] : run.assets)]
}
