import type { AssetDefinition } from '../../contract/definition.ts'
import { base32 } from '../../lib/base32.ts'
import { isServoError } from '../../lib/error.ts'
import { sha256Bytes } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import type { EventDefinition } from '../../model/event.ts'
import { readKey } from '../../partitions/key.ts'
import { keysOf } from '../../partitions/key-list.ts'
import type { KeyRange } from '../../partitions/key-range.ts'
import type { PlanCreated } from '../tasks/plan-created.event.ts'
import type { AssetGraph } from './graph.ts'
import { type GraphPartitions, taskKey } from './graph-partitions.ts'
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
  /** Which partitions there are at this moment. */
  readonly partitions: GraphPartitions
}

/** The longest id that an event may carry; see model/envelope.ts. */
const MAX_TASK_KEY = 512

/**
 * Turns what a run asks for into tasks and edges. Edges lead only from selected assets to selected assets: an upstream that
 * is not selected is read from its last materialization, and what lies behind it does not matter.
 */
export function planRun({ run, graph, graphVersion, partitions }: PlanRequest): { events: PlanPart[] } | { error: string } {
  try {
    const chosen = chooseWork(run, graph, partitions)
    if ('error' in chosen) return chosen
    const tasks = chosen.order.flatMap((key) => tasksOf(key, run, graph, { chosen, partitions }))
    const tooLong = tasks.find((task) => task.task_key.length > MAX_TASK_KEY)
    if (tooLong !== undefined) {
      return {
        error: `the task ${tooLong.task_key.slice(0, 100)}… has a name of more than ${MAX_TASK_KEY} characters. Shorten the partition key.`,
      }
    }
    return { events: partsOf(run, graphVersion, tasks) }
  } catch (error) {
    if (isServoError(error, 'invalid') || isServoError(error, 'not_found'))
      return { error: [error.message, error.hint].filter(Boolean).join('\n') }
    throw error
  }
}

interface Work {
  readonly chosen: Chosen
  readonly partitions: GraphPartitions
}

function tasksOf(key: string, run: RunToPlan, graph: AssetGraph, work: Work): PlannedTask[] {
  const settings = settingsOf(graph.assets.get(key) as AssetDefinition, run)
  const several = work.partitions.of(key).dimensions.length > 0
  return [...(work.chosen.partitions.get(key) ?? [])].map((partition) => ({
    task_key: taskKey(key, partition),
    asset_key: key,
    ...(partition !== null && { partition_key: partition, ...(several && { partition_values: { ...readKey(partition) } }) }),
    depends_on: waitsFor(key, partition, work),
    ...settings,
  }))
}

/** What a task waits for: those partitions it is made from that the same run makes. */
function waitsFor(key: string, partition: string | null, { chosen, partitions }: Work): string[] {
  const tasks = new Set<string>()
  for (const link of partitions.links(key)) {
    const made = chosen.partitions.get(link.upstream)
    const ranges = partitions.neededBy(key, link, partition ?? '')
    if (made === undefined) continue
    for (const each of among(made, ranges)) tasks.add(taskKey(link.upstream, each))
  }
  return [...tasks]
}

/** The partitions that are made and in the ranges, by going through whichever are fewer. */
function* among(made: ReadonlySet<string | null>, ranges: readonly KeyRange[]): Iterable<string | null> {
  if (made.has(null)) {
    yield null
    return
  }
  const count = ranges.reduce((sum, range) => sum + range.count, 0)
  if (count <= made.size) {
    for (const range of ranges) for (const key of keysOf(range)) if (made.has(key)) yield key
  } else {
    for (const key of made) if (ranges.some((range) => range.has(key as string))) yield key
  }
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
