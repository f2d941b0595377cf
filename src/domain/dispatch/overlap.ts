import { overlapPolicies } from '../../contract/overlap-policies.ts'
import { isObject } from '../../lib/is-object.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { becauseOf } from '../runs/event-context.ts'
import { RunCancelRequested } from '../runs/run-cancel-requested.event.ts'
import { type RunRow, runs } from '../runs/runs.table.ts'
import { TaskSkipped } from '../tasks/task-skipped.event.ts'
import type { TaskRow } from '../tasks/tasks.table.ts'

type Task = Readonly<TaskRow>
type OverlapPolicy = (typeof overlapPolicies)[number]

/** What the author of the asset wants while another run makes the same partition; undefined for both at a time. */
function overlapOf({ spec }: Task): OverlapPolicy | undefined {
  const { overlap } = isObject(spec) ? spec : {}
  return overlapPolicies.find((policy) => policy === overlap)
}

/** True while a worker has the task. */
export const isInFlight = ({ state }: Task): boolean => state === 'DISPATCHED' || state === 'RUNNING'

/** True between two attempts of a task: it still has its partition. */
const isBetweenAttempts = ({ state, attempt }: Task): boolean => state === 'RETRY_WAIT' || (state === 'READY' && attempt > 1)

/** What a task makes, and no two runs may make at once. */
const placesOf = ({ asset_key, partition_key, partition_keys }: Task): readonly string[] =>
  asset_key === null ? [] : (partition_keys ?? [partition_key ?? '']).map((partition) => `${asset_key}\0${partition}`)

/** The run that is making what a ready task would make, if the task has to wait for it. */
export function runInTheWay(task: Task, all: Iterable<Task>): string | undefined {
  if (overlapOf(task) === undefined) return undefined
  const begun = new TasksByPlace()
  for (const other of all) if (isInFlight(other) || isBetweenAttempts(other)) begun.set(other, true)
  return begun.besides(task)[0]?.run_id
}

/** Tasks by what they make. */
class TasksByPlace {
  readonly #at = new Map<string, Set<Task>>()
  readonly #tasks = new Set<Task>()

  set(task: Task, isThere: boolean): void {
    if (this.#tasks.has(task) === isThere) return
    if (isThere) this.#tasks.add(task)
    else this.#tasks.delete(task)
    for (const place of placesOf(task)) {
      const there = this.#at.get(place) ?? new Set()
      if (isThere) this.#at.set(place, there.add(task))
      else if (there.delete(task) && there.size === 0) this.#at.delete(place)
    }
  }

  /** Tasks of other runs that make something of what this one makes, in an order that does not depend on how they came. */
  besides(task: Task): Task[] {
    if (this.#at.size === 0) return []
    const found = new Set<Task>()
    for (const place of placesOf(task))
      for (const other of this.#at.get(place) ?? []) if (other.run_id !== task.run_id) found.add(other)
    return [...found].sort((a, b) => (a.run_id < b.run_id ? -1 : 1))
  }
}

/**
 * Keeps runs apart that make the same partition of an asset, if its author says so. A task has its partitions from its first dispatch to its
 * end. Whether another task is skipped, or a run is cancelled, is decided when that task is ready, whether there is room for it or not.
 */
export class Overlaps {
  readonly #begun = new TasksByPlace()
  /** Ready tasks that are not only to wait. */
  readonly #impatient = new TasksByPlace()
  readonly #toJudge = new Set<Task>()
  /** Ready tasks that wait, by the task that they wait for. */
  readonly #aside = new Map<Task, Task[]>()
  /** Tasks whose dispatch is decided and that do not show it yet. */
  readonly #chosen = new Set<Task>()

  /** Sees how a task is now. Returns the tasks that waited for it and are to be looked at again. */
  observe(task: Task, { isOut, isCarried }: { isOut: boolean; isCarried: boolean }): readonly Task[] {
    const isBegun = isOut || (isCarried && isBetweenAttempts(task))
    this.#begun.set(task, isBegun)
    const policy = overlapOf(task)
    const isImpatient = isCarried && task.state === 'READY' && !isBegun && (policy === 'skip' || policy === 'replace')
    this.#impatient.set(task, isImpatient)
    if (isImpatient) this.#toJudge.add(task)
    if (isBegun) for (const other of this.#impatient.besides(task)) this.#toJudge.add(other)
    if (isOut) return []
    const waited = this.#aside.get(task) ?? []
    this.#aside.delete(task)
    return waited
  }

  /** What follows for ready tasks from others that have begun since. */
  decide(rows: Rows, now: number): NewEvent[] {
    const events: NewEvent[] = []
    for (const task of this.#toJudge)
      if (task.state === 'READY') events.push(...overlapEvents(rows, now, task, this.#begun.besides(task)))
    this.#toJudge.clear()
    return events
  }

  /** Puts a ready task aside if it has to wait for another, and says whether it did. */
  putAside(task: Task): boolean {
    if (overlapOf(task) === undefined) return false
    // Two have begun if one of them was asked for while another process led: they wait for each other's attempts alone.
    const isInTheWay = (other: Task): boolean => !isBetweenAttempts(task) || isInFlight(other) || this.#chosen.has(other)
    const other = this.#begun.besides(task).find(isInTheWay)
    if (other === undefined) return false
    this.#aside.set(other, [...(this.#aside.get(other) ?? []), task])
    return true
  }

  /** Notes that the dispatch of a task is decided. */
  choose(task: Task): void {
    this.#chosen.add(task)
    this.#begun.set(task, true)
  }

  /** Forgets what was decided: the rows show it, or it was refused. */
  settle(): void {
    for (const task of this.#chosen) this.#begun.set(task, isBetweenAttempts(task))
    this.#chosen.clear()
  }
}

/**
 * What follows from tasks of other runs that have begun to make what a ready task would make: it is skipped, or the older of two runs is
 * cancelled. Nothing follows if it only waits. A run that is being cancelled is not in the way for long.
 */
function overlapEvents(rows: Rows, now: number, task: Task, begun: readonly Task[]): NewEvent[] {
  const policy = overlapOf(task)
  const own = rows.hot(runs).get(task.run_id)
  const others = begun.flatMap((other) => rows.hot(runs).get(other.run_id) ?? []).filter(isKept)
  const [first] = others
  if (own === undefined || first === undefined || !isKept(own)) return []
  if (policy === 'skip') {
    const { run_id, task_key } = task
    return [newEvent(TaskSkipped, { run_id, task_key, overlap_run_id: first.run_id }, becauseOf(rows, task))]
  }
  if (policy !== 'replace') return []
  const newer = others.find((other) => wasAskedAfter(other, own, now))
  if (newer !== undefined) return [replaced(rows, task, own, newer)]
  return others.map((older) => replaced(rows, task, older, own))
}

const isKept = (run: Readonly<RunRow>): boolean => run.cancel_requested_at === null

/** A run that was asked for in the future was asked for in the past, by a clock that was ahead. */
function wasAskedAfter(one: Readonly<RunRow>, other: Readonly<RunRow>, now: number): boolean {
  const [isAhead, isOtherAhead] = [one.requested_at > now, other.requested_at > now]
  if (isAhead !== isOtherAhead) return isOtherAhead
  if (one.requested_at !== other.requested_at) return one.requested_at > other.requested_at
  return one.run_id > other.run_id
}

const replaced = (rows: Rows, task: Task, { run_id }: Readonly<RunRow>, by: Readonly<RunRow>): NewEvent =>
  newEvent(
    RunCancelRequested,
    { run_id, requested_by: `asset:${task.asset_key}`, reason: `replaced by ${by.run_id}` },
    { ...becauseOf(rows, task), correlation_id: run_id },
  )
