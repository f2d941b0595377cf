import { Heap } from '../../lib/collections/heap.ts'
import type { Controller } from '../../model/controller.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import type { Row } from '../../model/table.ts'
import { pools } from '../assets/pools.table.ts'
import { becauseOf } from '../runs/event-context.ts'
import { type TaskRow, tasks } from '../tasks/tasks.table.ts'
import { isRowOf } from '../typed-rows.ts'
import { attemptId } from './dispatch-ids.ts'
import { DispatchRequested } from './dispatch-requested.event.ts'
import { isInFlight, Overlaps } from './overlap.ts'
import { LOCAL_QUEUE, queueOf } from './queue.ts'
import { hasLocalRoom, hasRemoteRoom, type Limits } from './room.ts'

type Ready = Readonly<TaskRow>

/** Larger priorities first, then the longest wait. The planner has added the priority of the run. */
function comesBefore(a: Ready, b: Ready): boolean {
  if (a.priority !== b.priority) return a.priority > b.priority
  const waited = (a.ready_at ?? 0) - (b.ready_at ?? 0)
  if (waited !== 0) return waited < 0
  if (a.run_id !== b.run_id) return a.run_id < b.run_id
  return a.task_key < b.task_key
}

/** One queue of workers, and how many of its tasks are with them. */
interface QueueState {
  readonly name: string
  readonly lanes: Map<string | null, Lane>
  inFlight: number
}

/** The tasks of a queue that share a pool, or name none. */
interface Lane {
  readonly queue: QueueState
  readonly pool: string | null
  readonly ready: Heap<Ready>
}

interface Next {
  readonly lane: Lane
  readonly task: Ready
}

/**
 * Hands ready tasks to workers as long as there is room, the most urgent first. A task stays READY until its turn, so that
 * cancelling it, or being overtaken by something more urgent, costs nothing. Limits are read whenever it decides. Tasks of runs
 * that this process does not carry stay where they are, and take no room of its workers. Tasks of other runs that make the same partition
 * wait, are skipped or replace each other, as the author of the asset says.
 */
export function dispatchController(limits: () => Limits, carries: (runId: string) => boolean = () => true): Controller {
  const slots = new Map<string, number>()
  const queues = new Map<string, QueueState>()
  /** Tasks with workers, by pool. A pool may be shared by queues. */
  const pooled = new Map<string, number>()
  const inFlight = new Map<Ready, Lane>()
  const out = { local: 0, remote: 0 }
  const queued = new Set<Ready>()
  const overlaps = new Overlaps()

  function laneOf(task: Ready): Lane {
    const name = queueOf(task)
    let queue = queues.get(name)
    if (queue === undefined) {
      queue = { name, lanes: new Map(), inFlight: 0 }
      queues.set(name, queue)
    }
    let lane = queue.lanes.get(task.pool)
    if (lane === undefined) {
      lane = { queue, pool: task.pool, ready: new Heap(comesBefore) }
      queue.lanes.set(task.pool, lane)
    }
    return lane
  }

  function limitPool({ pool, slots: count }: Readonly<Row<typeof pools>>): void {
    if (count === null) slots.delete(pool)
    else slots.set(pool, count)
  }

  function count({ queue, pool }: Lane, more: 1 | -1): void {
    queue.inFlight += more
    out[queue.name === LOCAL_QUEUE ? 'local' : 'remote'] += more
    if (pool !== null) pooled.set(pool, (pooled.get(pool) ?? 0) + more)
  }

  function observe(task: Ready): void {
    const isCarried = carries(task.run_id)
    // Of runs that are not carried, only remote attempts take room; attempts that an earlier process dispatched to its local workers wait.
    const isOut = isCarried ? isInFlight(task) : task.state === 'RUNNING' && queueOf(task) !== LOCAL_QUEUE
    const lane = inFlight.get(task)
    if (isOut && lane === undefined) {
      const own = laneOf(task)
      inFlight.set(task, own)
      count(own, 1)
    } else if (!isOut && lane !== undefined) {
      inFlight.delete(task)
      count(lane, -1)
    }
    for (const waited of overlaps.observe(task, { isOut, isCarried })) laneOf(waited).ready.push(waited)
    if (task.state !== 'READY' || !isCarried || queued.has(task)) return
    queued.add(task)
    laneOf(task).ready.push(task)
  }

  /** The most urgent task that may start, and its lane. */
  function next(now: Limits): Next | undefined {
    let best: Next | undefined
    for (const { name, lanes, inFlight: offered } of queues.values()) {
      if (!(name === LOCAL_QUEUE ? hasLocalRoom(now, out) : hasRemoteRoom(now, out, name, offered))) continue
      for (const lane of lanes.values()) {
        dropStale(lane)
        const task = lane.ready.peek()
        if (task === undefined || isFull(lane)) continue
        if (best === undefined || comesBefore(task, best.task)) best = { lane, task }
      }
    }
    return best
  }

  /** A pool without a limit is limited by its queue alone. */
  const isFull = ({ pool }: Lane): boolean =>
    pool !== null && (pooled.get(pool) ?? 0) >= (slots.get(pool) ?? Number.POSITIVE_INFINITY)

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
    observe: (table, row) => {
      if (isRowOf(pools, table, row)) limitPool(row)
      if (isRowOf(tasks, table, row)) observe(row)
    },
    decide({ rows, now: moment }): readonly NewEvent[] {
      if (queued.size === 0) return []
      const events = overlaps.decide(rows, moment)
      // What follows from them is seen before anything else begins.
      if (events.length > 0) return events
      const chosen: Lane[] = []
      const now = limits()
      for (let best = next(now); best !== undefined; best = next(now)) {
        const { lane, task } = best
        lane.ready.pop()
        if (overlaps.putAside(task)) continue
        queued.delete(task)
        overlaps.choose(task)
        chosen.push(lane)
        count(lane, 1)
        events.push(requestDispatch(rows, task, lane.queue.name))
      }
      // It is counted when its row shows the dispatch: a dispatch that was refused takes no room.
      for (const lane of chosen) count(lane, -1)
      overlaps.settle()
      return events
    },
  }
}

function requestDispatch(rows: Rows, task: Ready, queue: string): NewEvent {
  const { run_id, task_key, attempt } = task
  const payload = { run_id, task_key, attempt, attempt_id: attemptId(run_id, task_key, attempt), worker_queue: queue }
  return newEvent(DispatchRequested, payload, becauseOf(rows, task))
}
