import type { AssetDefinition } from '../../contract/project-manifest.ts'
import { isServoError } from '../../lib/error.ts'
import { readKey } from '../../partitions/key.ts'
import { keysOf } from '../../partitions/key-list.ts'
import type { KeyRange } from '../../partitions/key-range.ts'
import { takesSame } from '../../partitions/mappings/takes-many.ts'
import type { AssetGraph } from '../assets/graph.ts'
import { type GraphPartitions, taskKey } from '../assets/graph-partitions.ts'
import { type ChosenWork, chooseWork, type WorkSelection } from './plan-choice.ts'
import { type PlannedTask, type PlanPart, planParts } from './plan-parts.ts'
import { MAX_PARTITIONS_PER_TASK, type TaskRange, taskRanges } from './task-ranges.ts'

export interface RunToPlan extends WorkSelection {
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
 * Turns the request of a run into tasks and edges. Edges lead only from selected assets to selected assets: an upstream that
 * is not selected is read from its last materialization, and what lies behind it does not matter.
 */
export function planRun({ run, graph, graphVersion, partitions }: PlanRequest): { events: PlanPart[] } | { error: string } {
  try {
    const chosen = chooseWork(run, graph, partitions)
    if ('error' in chosen) return chosen
    const work: Work = { chosen, partitions, ranges: rangesOf(chosen, graph, partitions) }
    const tasks = chosen.order.flatMap((key) => tasksOf(key, run, graph, work))
    const tooLong = tasks.find((task) => task.task_key.length > MAX_TASK_KEY)
    if (tooLong !== undefined) {
      return {
        error: `the task ${tooLong.task_key.slice(0, 100)}… has a key of more than ${MAX_TASK_KEY} characters. Shorten the partition key.`,
      }
    }
    return { events: planParts(run.run_id, graphVersion, tasks) }
  } catch (error) {
    if (isServoError(error, 'invalid') || isServoError(error, 'not_found'))
      return { error: [error.message, error.hint].filter(Boolean).join('\n') }
    throw error
  }
}

interface Work {
  readonly chosen: ChosenWork
  readonly partitions: GraphPartitions
  /** Of assets that are made in ranges. */
  readonly ranges: ReadonlyMap<string, TaskRanges>
}

interface TaskRanges {
  readonly list: readonly TaskRange[]
  /** Partition → the task that makes it. */
  readonly taskOf: ReadonlyMap<string, string>
}

function rangesOf(chosen: ChosenWork, graph: AssetGraph, partitions: GraphPartitions): ReadonlyMap<string, TaskRanges> {
  const ranges = new Map<string, TaskRanges>()
  for (const key of chosen.order) {
    const { ranges: said } = graph.definition(key)
    const set = partitions.of(key)
    if (!said || set.definition === undefined) continue
    const list = taskRanges(set, chosen.partitions.get(key) ?? [], said.at_most ?? MAX_PARTITIONS_PER_TASK)
    const taskOf = new Map(list.flatMap((range) => range.keys.map((each) => [each, taskKey(key, range.key)] as const)))
    ranges.set(key, { list, taskOf })
  }
  return ranges
}

function tasksOf(key: string, run: RunToPlan, graph: AssetGraph, work: Work): PlannedTask[] {
  const settings = settingsOf(graph.definition(key), run)
  const ranges = work.ranges.get(key)
  if (ranges !== undefined) return ranges.list.map((range) => rangeTask(key, range, work, settings))
  const several = work.partitions.of(key).dimensions.length > 0
  return [...(work.chosen.partitions.get(key) ?? [])].map((partition) => ({
    task_key: taskKey(key, partition),
    asset_key: key,
    ...(partition !== '' && { partition_key: partition, ...(several && { partition_values: { ...readKey(partition) } }) }),
    depends_on: [...waitsFor(key, [partition], work)],
    ...settings,
  }))
}

/** The task waits for all upstream of its partitions, except for what it makes itself. */
function rangeTask(key: string, range: TaskRange, work: Work, settings: Omit<PlannedTask, 'task_key'>): PlannedTask {
  const task_key = taskKey(key, range.key)
  const upstream = waitsFor(key, range.keys, work)
  upstream.delete(task_key)
  return {
    task_key,
    asset_key: key,
    partition_key: range.key,
    partition_keys: [...range.keys],
    ...(range.values && { partition_values: { ...range.values } }),
    depends_on: [...upstream],
    ...settings,
  }
}

/** The upstream tasks of a task: the upstream partitions that the same run makes. */
function waitsFor(key: string, made: readonly string[], { chosen, partitions, ranges }: Work): Set<string> {
  const tasks = new Set<string>()
  for (const link of partitions.links(key)) {
    const above = chosen.partitions.get(link.upstream)
    const taskOf = ranges.get(link.upstream)?.taskOf
    for (const partition of takesSame(link.mapping) ? made.slice(0, 1) : made) {
      const needed = partitions.neededBy(key, link, partition)
      if (above === undefined) continue
      for (const each of among(above, needed)) tasks.add(taskOf?.get(each) ?? taskKey(link.upstream, each))
    }
  }
  return tasks
}

/** The partitions in the ranges that the run makes, by going through the smaller side. */
function* among(made: ReadonlySet<string>, ranges: readonly KeyRange[]): Iterable<string> {
  if (made.has('')) {
    yield ''
    return
  }
  const count = ranges.reduce((sum, range) => sum + range.count, 0)
  if (count <= made.size) {
    for (const range of ranges) for (const key of keysOf(range)) if (made.has(key)) yield key
  } else {
    for (const key of made) if (ranges.some((range) => range.has(key))) yield key
  }
}

const LOWEST = -1_000
const HIGHEST = 1_000

function settingsOf(asset: AssetDefinition, run: RunToPlan): Omit<PlannedTask, 'task_key'> {
  const { retry, io, kind, inputs, queue } = asset
  const { overlap } = asset.policies
  return {
    max_attempts: retry?.max_attempts ?? 1,
    ...(asset.timeout_sec && { timeout_sec: asset.timeout_sec }),
    ...(asset.heartbeat_timeout_sec && { heartbeat_timeout_sec: asset.heartbeat_timeout_sec }),
    ...(asset.pool && { pool: asset.pool }),
    priority: Math.min(HIGHEST, Math.max(LOWEST, run.priority + asset.priority)),
    // This is stored with every task of every run, so unset options are left out.
    spec: {
      ...{ kind, io },
      ...(queue && { queue }),
      ...(retry && { retry }),
      ...(overlap !== undefined && { overlap }),
      ...(Object.keys(inputs).length > 0 && { inputs }),
    },
  }
}
