import { Heap } from '../../lib/heap.ts'
import type { Controller } from '../../model/controller.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { AnyRow, Row } from '../../model/table.ts'
import { pools } from '../assets/pools.table.ts'
import { type TaskRow, tasks } from '../tasks/tasks.table.ts'
import { DispatchRequested } from './dispatch-requested.event.ts'
import { attemptId } from './identity.ts'

type Ready = Readonly<TaskRow>

/** Larger priorities first; then whoever has waited longest. The planner has added the priority of the run. */
function comesBefore(a: Ready, b: Ready): boolean {
  if (a.priority !== b.priority) return a.priority > b.priority
  const waited = (a.ready_at ?? 0) - (b.ready_at ?? 0)
  if (waited !== 0) return waited < 0
  if (a.run_id !== b.run_id) return a.run_id < b.run_id
  return a.task_key < b.task_key
}

/** One named pool, or the tasks that name none. */
interface Lane {
  readonly ready: Heap<Ready>
  inFlight: number
}

/**
 * Hands ready tasks to workers as long as there is room, the most urgent first. A task stays READY until its turn, so that
 * cancelling it, or being overtaken by something more urgent, costs nothing. `capacity` is how many may be with workers.
 */
export function dispatchController(capacity: () => number): Controller {
  const slots = new Map<string, number>()
  const lanes = new Map<string | null, Lane>()
  const inFlight = new Map<Ready, Lane>()
  const queued = new Set<Ready>()

  function laneOf(pool: string | null): Lane {
    let lane = lanes.get(pool)
    if (lane === undefined) {
      lane = { ready: new Heap(comesBefore), inFlight: 0 }
      lanes.set(pool, lane)
    }
    return lane
  }

  function limitPool({ pool, slots: count }: Readonly<Row<typeof pools>>): void {
    if (count === null) slots.delete(pool)
    else slots.set(pool, count)
  }

  function observe(task: Ready): void {
    const isInFlight = task.state === 'DISPATCHED' || task.state === 'RUNNING'
    const lane = inFlight.get(task)
    if (isInFlight && lane === undefined) {
      const own = laneOf(task.pool)
      inFlight.set(task, own)
      own.inFlight += 1
    } else if (!isInFlight && lane !== undefined) {
      inFlight.delete(task)
      lane.inFlight -= 1
    }
    if (task.state !== 'READY' || queued.has(task)) return
    queued.add(task)
    laneOf(task.pool).ready.push(task)
  }

  /** The lane whose first task is the most urgent of those that may start. */
  function next(dispatched: ReadonlyMap<Lane, number>): Lane | undefined {
    let best: Lane | undefined
    for (const [pool, lane] of lanes) {
      dropStale(lane)
      const first = lane.ready.peek()
      if (first === undefined) continue
      // A pool without a limit is limited by the capacity alone.
      const limit = (pool === null ? undefined : slots.get(pool)) ?? Number.POSITIVE_INFINITY
      if (lane.inFlight + (dispatched.get(lane) ?? 0) >= limit) continue
      if (best === undefined || comesBefore(first, best.ready.peek() as Ready)) best = lane
    }
    return best
  }

  function dropStale({ ready }: Lane): void {
    for (let first = ready.peek(); first !== undefined && first.state !== 'READY'; first = ready.peek()) {
      queued.delete(first)
      ready.pop()
    }
  }

  return {
    name: 'dispatch',
    doc: 'Hands ready tasks to workers, within the limits, the most urgent first.',
    watches: [tasks, pools],
    observe: (table, row: AnyRow) => {
      if (table === pools) limitPool(row as Row<typeof pools>)
      else observe(row as TaskRow)
    },
    decide(): readonly NewEvent[] {
      const events: NewEvent[] = []
      if (queued.size === 0) return events
      const room = capacity()
      const dispatched = new Map<Lane, number>()
      while (inFlight.size + events.length < room) {
        const lane = next(dispatched)
        if (lane === undefined) break
        const task = lane.ready.pop() as Ready
        queued.delete(task)
        dispatched.set(lane, (dispatched.get(lane) ?? 0) + 1)
        const { run_id, task_key, attempt } = task
        const payload = { run_id, task_key, attempt, attempt_id: attemptId(run_id, task_key, attempt) }
        events.push(newEvent(DispatchRequested, payload, { correlation_id: run_id }))
      }
      return events
    },
  }
}
