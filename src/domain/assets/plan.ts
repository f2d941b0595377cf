import type { AssetDefinition } from '../../contract/definition.ts'
import { base32 } from '../../lib/base32.ts'
import { isServoError } from '../../lib/error.ts'
import { sha256Bytes } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import type { EventDefinition } from '../../model/event.ts'
import type { PlanCreated } from '../tasks/plan-created.event.ts'
import type { AssetGraph } from './graph.ts'
import { inParts } from './parts.ts'
import { type Chosen, chooseWork, type WorkAskedFor } from './plan-choice.ts'

type PlanPart = typeof PlanCreated extends EventDefinition<infer _, infer I> ? I : never
type PlannedTask = PlanPart['tasks'][number]

export interface RunToPlan extends WorkAskedFor {
  readonly run_id: string
  readonly priority: number
}

export interface PlanRequest {
  readonly run: RunToPlan
  readonly graph: AssetGraph
  readonly graphVersion: string
}

/** The longest id that an event may carry; see model/envelope.ts. */
const MAX_TASK_KEY = 512

/** Names asset and partition within a run. Keys of assets have no brackets, so no two tasks share a name. */
export const taskKey = (asset: string, partition: string | null): string =>
  partition === null ? asset : `${asset}[${partition}]`

/**
 * Turns what a run asks for into tasks and edges. Edges lead only from selected assets to selected assets: an upstream that
 * is not selected is read from its last materialization, and what lies behind it does not matter.
 */
export function planRun({ run, graph, graphVersion }: PlanRequest): { events: PlanPart[] } | { error: string } {
  try {
    const chosen = chooseWork(run, graph)
    if ('error' in chosen) return chosen
    const tasks = chosen.order.flatMap((key) => tasksOf(key, run, graph, chosen))
    const tooLong = tasks.find((task) => task.task_key.length > MAX_TASK_KEY)
    if (tooLong !== undefined) {
      return {
        error: `the task ${tooLong.task_key.slice(0, 100)}… has a name of more than ${MAX_TASK_KEY} characters. Shorten the partition key.`,
      }
    }
    return { events: partsOf(run, graphVersion, tasks) }
  } catch (error) {
    if (isServoError(error, 'invalid')) return { error: [error.message, error.hint].filter(Boolean).join('\n') }
    throw error
  }
}

function tasksOf(key: string, run: RunToPlan, graph: AssetGraph, chosen: Chosen): PlannedTask[] {
  const asset = graph.assets.get(key) as AssetDefinition
  const upstream = graph.upstream(key).filter((each) => chosen.partitions.has(each))
  const settings = settingsOf(asset, run)
  return [...(chosen.partitions.get(key) ?? [])].map((partition) => ({
    task_key: taskKey(key, partition),
    asset_key: key,
    ...(partition !== null && { partition_key: partition }),
    depends_on: upstream.flatMap((each) => waitsFor(each, partition, chosen)),
    ...settings,
  }))
}

/** The same partition where there is one; otherwise, between what has partitions and what has none, all of upstream. */
function waitsFor(upstream: string, partition: string | null, chosen: Chosen): string[] {
  const made = chosen.partitions.get(upstream) as ReadonlySet<string | null>
  if (made.has(partition) && partition !== null) return [taskKey(upstream, partition)]
  return partition === null || made.has(null) ? [...made].map((each) => taskKey(upstream, each)) : []
}

const LOWEST = -1_000
const HIGHEST = 1_000

function settingsOf(asset: AssetDefinition, run: RunToPlan): Omit<PlannedTask, 'task_key'> {
  const { retry, io, kind, inputs, queue } = asset
  return {
    max_attempts: retry?.max_attempts ?? 1,
    ...(asset.timeout_sec && { timeout_sec: asset.timeout_sec }),
    ...(asset.pool && { pool: asset.pool }),
    priority: Math.min(HIGHEST, Math.max(LOWEST, run.priority + asset.priority)),
    // Stored with every task of every run: what nobody set is left out.
    spec: { kind, io, ...(queue && { queue }), ...(retry && { retry }), ...(Object.keys(inputs).length > 0 && { inputs }) },
  }
}

/** Part after part, each below the limits of an event. The id is the plan's content: planning twice is planning once. */
function partsOf(run: RunToPlan, graphVersion: string, tasks: readonly PlannedTask[]): PlanPart[] {
  const texts = tasks.map((task) => canonicalJson(task))
  const plan_id = `plan_${base32(sha256Bytes([run.run_id, graphVersion, ...texts].join('\n'))).slice(0, 26)}`
  const parts = inParts(tasks, texts, (task) => `the task ${task.task_key}`)
  return parts.map((part, index) => ({
    run_id: run.run_id,
    plan_id,
    graph_version: graphVersion,
    part: index,
    parts: parts.length,
    tasks: part,
  }))
}
