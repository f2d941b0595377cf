import { isRunOver, type RunState } from '../runs/runs.table.ts'
import { isTaskOver, type TaskState } from '../tasks/tasks.table.ts'
import { type Reason, reason, type WhyAnswer, type WhyVerdict } from './reasons.ts'

/** A run as JSON shows it. */
export interface ShownRun {
  readonly run_id: string
  readonly state: RunState
  readonly asset_selection: readonly string[]
  readonly partition_selection: readonly string[] | null
  readonly plan_parts: number
  readonly tasks_total: number
  readonly tasks_succeeded: number
  readonly tasks_skipped: number
  readonly error: string | null
  readonly requested_at: string
  readonly finished_at: string | null
  readonly cancel_requested_at: string | null
  readonly cancel_requested_by: string | null
  readonly cancel_reason: string | null
}

/** A task as JSON shows it. */
export interface ShownTask {
  readonly task_key: string
  readonly state: TaskState
  readonly attempt: number
  readonly pool: string | null
  readonly ready_at: string | null
  readonly finished_at: string | null
  readonly error_message: string | null
  readonly cause_task_key: string | null
  readonly overlap_run_id: string | null
}

/** What a task that has not ended waits for. */
export interface Waiting {
  /** Runs that must end first and have not. */
  readonly after: readonly string[]
  /** When and where the present attempt of a task was dispatched or began. */
  attemptOf(taskKey: string): { readonly since: string | null; readonly worker_id: string | null } | undefined
  /** The queue of a task, and how many tasks are with its workers. */
  queueOf(taskKey: string): { readonly queue: string; readonly busy: number }
  /** The limit of a pool, and how much of it is in use; undefined for a pool without a limit. */
  pool(name: string): { readonly slots: number; readonly busy: number } | undefined
  /** The run that makes the partition of a task, which therefore waits. */
  overlapOf(taskKey: string): string | undefined
  retryAt(taskKey: string): string | null
  /** The unfinished tasks that a task waits for. */
  upstreamOf(taskKey: string): readonly { readonly task_key: string; readonly state: TaskState }[]
}

export interface KnownRun {
  readonly run: ShownRun
  readonly tasks: readonly ShownTask[]
  readonly origin: Reason
  readonly waiting: Waiting
}

/** As many tasks are told one by one; the others are counted. */
const TOLD_TASKS = 5

export function whyRun({ run, tasks, origin, waiting }: KnownRun): WhyAnswer {
  const { run_id, state } = run
  const [verdict, why] = isRunOver(state) ? ended(run, tasks) : unfinished(run, tasks, waiting)
  const selects = reason('selects', { assets: run.asset_selection, partitions: run.partition_selection })
  return {
    subject: { kind: 'run', id: run_id, name: run_id, partition: null, message_id: null },
    verdict,
    at: null,
    timezone: null,
    because: [...why, origin, selects],
  }
}

function cancelled({ cancel_requested_at: at, cancel_requested_by: by, cancel_reason }: ShownRun): Reason[] {
  return at === null ? [] : [reason('cancel_asked', { by, at, reason: cancel_reason })]
}

/** Its last attempt ended before it heard of the cancellation. */
function cancelledTooLate({ cancel_requested_at: at, cancel_requested_by: by, cancel_reason }: ShownRun): Reason[] {
  return at === null ? [] : [reason('cancelled_too_late', { by, at, reason: cancel_reason })]
}

function ended(run: ShownRun, tasks: readonly ShownTask[]): [WhyVerdict, Reason[]] {
  const skips = skipped(tasks)
  if (run.state === 'SUCCEEDED') {
    // A run without tasks has made all of them.
    const isMade = run.tasks_succeeded > 0 || skips.length === 0
    const made = isMade ? [reason('all_succeeded', { count: run.tasks_succeeded, at: run.finished_at })] : []
    return ['succeeded', [...made, ...skips, ...cancelledTooLate(run)]]
  }
  const failures = tasks
    .filter(({ state }) => state === 'FAILED')
    .sort((a, b) => ((a.finished_at ?? '') < (b.finished_at ?? '') ? -1 : 1))
  const failed = failures.slice(0, TOLD_TASKS).map((task) => {
    const { task_key, attempt: attempts, error_message: error, finished_at: at } = task
    return reason('task_failed', { task_key, attempts, error, at }, skippedBelow(tasks, task_key))
  })
  const more = failures.length > TOLD_TASKS ? [reason('more_failed', { count: failures.length - TOLD_TASKS })] : []
  const error = run.error === null ? [] : [reason('unplannable', { error: run.error })]
  if (run.state === 'FAILED') return ['failed', [...error, ...failed, ...more, ...skips, ...cancelled(run)]]
  return ['cancelled', [...cancelled(run), ...failed, ...more, ...skips]]
}

function skippedBelow(tasks: readonly ShownTask[], cause_task_key: string): Reason[] {
  const below = tasks.filter((task) => task.state === 'SKIPPED' && task.cause_task_key === cause_task_key)
  return below.length === 0 ? [] : [reason('tasks_skipped', { count: below.length, cause_task_key })]
}

/** Tasks that another run kept from being tried, and what was skipped because of them. */
function skipped(tasks: readonly ShownTask[]): Reason[] {
  const all = tasks.flatMap(({ task_key, overlap_run_id }) =>
    overlap_run_id === null ? [] : [{ task_key, run_id: overlap_run_id }],
  )
  const told = all.slice(0, TOLD_TASKS).map((one) => reason('overlap_skipped', one, skippedBelow(tasks, one.task_key)))
  return all.length > TOLD_TASKS ? [...told, reason('more_skipped', { count: all.length - TOLD_TASKS })] : told
}

function unfinished(run: ShownRun, tasks: readonly ShownTask[], waiting: Waiting): [WhyVerdict, Reason[]] {
  const cancels = cancelled(run)
  if (waiting.after.length > 0) return ['waits', [reason('after_runs', { run_ids: waiting.after }), ...cancels]]
  if (run.plan_parts === 0) return ['waits', [reason('not_planned', { at: run.requested_at }), ...cancels]]
  const open = tasks.filter(({ state }) => !isTaskOver(state)).sort((a, b) => ORDER[a.state] - ORDER[b.state])
  const told = open.slice(0, TOLD_TASKS).map((task) => reasonOfTask(task, waiting))
  const more = open.length > TOLD_TASKS ? [reason('more_tasks', { count: open.length - TOLD_TASKS })] : []
  const isBusy = open.some(({ state }) => state === 'RUNNING')
  return [isBusy ? 'runs' : 'waits', [...told, ...more, ...cancels]]
}

/** What is furthest holds up the rest, and is told first. */
const ORDER: Readonly<Record<TaskState, number>> = {
  RUNNING: 0,
  DISPATCHED: 1,
  RETRY_WAIT: 2,
  READY: 3,
  BLOCKED: 4,
  PLANNED: 5,
  SKIPPED: 6,
  CANCELLED: 6,
  FAILED: 6,
  SUCCEEDED: 6,
}

function reasonOfTask(task: ShownTask, waiting: Waiting): Reason {
  const { task_key, state, attempt, ready_at, error_message } = task
  if (state === 'RUNNING') {
    const { since = null, worker_id = null } = waiting.attemptOf(task_key) ?? {}
    return reason('task_running', { task_key, attempt, since, worker_id })
  }
  if (state === 'RETRY_WAIT')
    return reason('retry_later', { task_key, attempt, at: waiting.retryAt(task_key), error: error_message })
  if (state === 'BLOCKED' || state === 'PLANNED') {
    const upstream = waiting.upstreamOf(task_key)
    return reason('upstream_unfinished', { task_key, upstream: upstream.slice(0, TOLD_TASKS), count: upstream.length })
  }
  const { queue, busy } = waiting.queueOf(task_key)
  if (state === 'DISPATCHED')
    return reason('task_with_queue', { task_key, queue, since: waiting.attemptOf(task_key)?.since ?? null })
  const inTheWay = waiting.overlapOf(task_key)
  if (inTheWay !== undefined) return reason('overlap_waits', { task_key, run_id: inTheWay })
  const pool = task.pool === null ? undefined : waiting.pool(task.pool)
  if (task.pool !== null && pool !== undefined && pool.busy >= pool.slots)
    return reason('pool_full', { task_key, pool: task.pool, ...pool })
  return reason('no_worker_free', { task_key, queue, since: ready_at, busy })
}
