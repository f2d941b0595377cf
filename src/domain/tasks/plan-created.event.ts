import { z } from 'zod'
import { count, id, textMap } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored, waitFor } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { liveRun, touchRun } from '../runs/run-progress.ts'
import type { RunRow } from '../runs/runs.table.ts'
import { runSubject } from '../subjects.ts'
import { raiseVersion } from '../typed-rows.ts'
import { depSatisfaction } from './dep-satisfaction.table.ts'
import { startPlan } from './plan-start.ts'
import { tasks } from './tasks.table.ts'

const plannedTask = z.object({
  task_key: id,
  asset_key: id.nullish(),
  partition_key: id.nullish(),
  partition_values: textMap.nullish(),
  /** All the partitions of a task that makes a range of them. */
  partition_keys: z.array(id).min(1).max(10_000).nullish(),
  depends_on: z.array(id).default([]),
  max_attempts: z.number().int().min(1).max(1_000).default(1),
  heartbeat_timeout_sec: z.number().int().min(1).default(60),
  timeout_sec: z.number().int().min(1).nullish(),
  pool: id.nullish(),
  priority: z.number().int().min(-1_000).max(1_000).default(0),
  spec: z.unknown().nullish(),
})

/** A plan of 100,000 tasks is many events of one segment: no single event outgrows the size limit. */
const MAX_TASKS_PER_PART = 2_000

const payload = z.object({
  run_id: id,
  plan_id: id,
  graph_version: id.nullish(),
  part: count,
  parts: z.number().int().min(1).max(10_000),
  tasks: z.array(plannedTask).max(MAX_TASKS_PER_PART),
  /** Further edges of tasks of this or another part: a task may wait for more tasks than an event can hold. */
  edges: z
    .array(z.object({ task_key: id, depends_on: z.array(id).max(100_000) }))
    .max(MAX_TASKS_PER_PART)
    .nullish(),
  /** Why the request cannot be turned into tasks; the run ends with it. */
  error: z.string().max(8_192).nullish(),
})

export const PlanCreated = defineEvent({
  type: 'PlanCreated',
  version: 1,
  doc: 'A run request was turned into tasks and edges; one part of that plan.',
  payload,
  idempotencyKey: (plan) => `plan:${plan.run_id}:${plan.part}`,
  dedup: 'structure',
  about: (plan) => ({ owner: 'runs', id: plan.run_id }),
  ordered: [
    {
      with: ['PlanCreated'],
      when: (mine, other) => mine.run_id === other.run_id && mine.plan_id !== other.plan_id,
      why: 'The first plan of a run is its plan.',
    },
    {
      with: ['PlanCreated'],
      when: (mine, other) => mine.run_id === other.run_id && mine.part !== other.part && nameSameTask(mine, other),
      why: 'The plan is flawed; of the task it names twice, the first is shown.',
    },
  ],
  fold({ event, at, payload: plan, rows, wake }) {
    const known = liveRun(rows, plan.run_id)
    if (known === 'unknown') return waitFor(runSubject(plan.run_id))
    if (known === 'over') return ignored('run_over')
    if (known.plan_id !== null && known.plan_id !== plan.plan_id) return ignored('other_plan')
    // Missing parts are counted, not tasks: a flawed plan names a task in two parts.
    const missing = known.plan_id === null ? Array.from({ length: plan.parts }, (_, part) => part) : known.plan_parts_missing
    if (!missing?.includes(plan.part)) return duplicate

    const run = touchRun(rows, plan.run_id, event.event_id)
    run.plan_parts_missing = missing.length === 1 ? null : missing.filter((part) => part !== plan.part)
    run.plan_id = plan.plan_id
    run.graph_version = plan.graph_version ?? null
    run.plan_parts = plan.parts
    run.plan_parts_seen += 1
    run.planned_at = Math.max(run.planned_at ?? 0, at)
    if (plan.error) run.error = plan.error
    for (const task of plan.tasks) addTask(rows, run, task, event.event_id)
    run.assets = [...new Set([...(run.assets ?? []), ...plan.tasks.flatMap(({ asset_key }) => asset_key ?? [])])].sort()
    for (const more of plan.edges ?? []) addEdges(rows, run, more, event.event_id)
    if (run.plan_parts_seen === run.plan_parts) startPlan(rows, run, wake)
    wake(runSubject(run.run_id))
    return applied
  },
})

function nameSameTask(one: z.infer<typeof payload>, other: z.infer<typeof payload>): boolean {
  const named = new Set(one.tasks.map((task) => task.task_key))
  return other.tasks.some((task) => named.has(task.task_key))
}

type Edges = Pick<z.infer<typeof plannedTask>, 'task_key' | 'depends_on'>

function addTask(rows: Rows, run: RunRow, task: z.infer<typeof plannedTask>, eventId: string): void {
  if (rows.hot(tasks).get(run.run_id, task.task_key) !== undefined) {
    const error = `the plan names the task ${task.task_key} twice`
    if (run.error === null || error < run.error) run.error = error
    return
  }
  run.tasks_total += 1
  rows.hot(tasks).insert({
    run_id: run.run_id,
    task_key: task.task_key,
    asset_key: task.asset_key ?? null,
    partition_key: task.partition_key ?? null,
    partition_values: task.partition_values ?? null,
    partition_keys: task.partition_keys ?? null,
    state: 'PLANNED',
    attempt: 1,
    attempt_id: null,
    deps_total: new Set(task.depends_on).size,
    deps_satisfied_count: 0,
    max_attempts: task.max_attempts,
    lost_attempts: null,
    heartbeat_timeout_sec: task.heartbeat_timeout_sec,
    timeout_sec: task.timeout_sec ?? null,
    pool: task.pool ?? null,
    priority: task.priority,
    spec: task.spec ?? null,
    ready_at: null,
    last_heartbeat_at: null,
    retry_not_before: null,
    finished_at: null,
    error_message: null,
    materialization_id: null,
    overlap_run_id: null,
    cause_task_key: null,
    cause_event_id: null,
    row_version: eventId,
  })
  addEdges(rows, run, task, eventId)
}

/** Edges are counted only when all parts are here: the task itself may be in a later part. */
function addEdges(rows: Rows, run: RunRow, { task_key, depends_on }: Edges, eventId: string): void {
  for (const upstream of depends_on) {
    const known = rows.hot(depSatisfaction).edit(run.run_id, upstream, task_key)
    if (known !== undefined) {
      raiseVersion(known, eventId)
      continue
    }
    rows.hot(depSatisfaction).insert({
      run_id: run.run_id,
      upstream_task_key: upstream,
      downstream_task_key: task_key,
      satisfied: false,
      resolution: null,
      satisfied_at: null,
      satisfying_attempt: null,
      row_version: eventId,
    })
  }
}
