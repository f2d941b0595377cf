import type { WireRun } from '../../api/run-contract.ts'
import type { Cell } from '../columns.ts'
import { colours, printable } from '../output.ts'
import type { TaskNow } from '../results/failures.ts'
import { durationText, shortId } from '../show-run.ts'

/** What is known of a run while it is under way. */
export interface Progress {
  readonly run: WireRun
  readonly tasks: readonly TaskNow[]
  /** How long tasks of an asset usually take, in milliseconds; absent as long as nobody knows. */
  readonly usualMs: Readonly<Record<string, number>>
  /** The last line that a task printed. */
  readonly printed: ReadonlyMap<string, string>
}

/** As many as one can follow; the block must fit on the smallest terminal. */
const SHOWN_TASKS = 5

/** How far a run is: its counts, and below them what runs now, the longest first. */
export function progressRows(progress: Progress, now: number): Cell[][] {
  const { run, tasks } = progress
  const running = tasks.filter(({ task }) => task.state === 'RUNNING').sort((a, b) => beganAt(a, now) - beganAt(b, now))
  // Tasks are heard of one by one; the counts of the run come with its changes, and are all that is known of tasks from before.
  const isOver = ({ task }: TaskNow): boolean => task.finished_at !== null
  const isIn =
    (state: string) =>
    (each: TaskNow): boolean =>
      each.task.state === state
  const known = run.tasks_succeeded + run.tasks_failed + run.tasks_skipped + run.tasks_cancelled
  const done = Math.max(known, tasks.filter(isOver).length)
  const failed = Math.max(run.tasks_failed, tasks.filter(isIn('FAILED')).length)
  const skipped = Math.max(run.tasks_skipped, tasks.filter(isIn('SKIPPED')).length)
  const left = remainingMs(progress, now)
  const head: Cell[] = [
    { text: shortId(run.run_id), paint: colours.bold },
    { text: `${done}/${run.tasks_total} done` },
    ...counted(failed, 'failed', colours.red),
    ...counted(skipped, 'skipped', colours.yellow),
    ...counted(running.length + tasks.filter((each) => isBeginning(each, now)).length, 'running', colours.cyan),
    { text: durationText(now - Date.parse(run.started_at ?? run.requested_at)), paint: colours.dim },
    ...(left === undefined ? [] : [{ text: `about ${roundText(left)} left`, paint: colours.dim }]),
  ]
  const rows = running.slice(0, SHOWN_TASKS).map((each) => runningRow(each, progress, now))
  const more = running.length - SHOWN_TASKS
  return [head, ...rows, ...(more > 0 ? [[{ text: `  and ${more} more`, paint: colours.dim }]] : [])]
}

/** A start is heard of a moment later, and never of a task that is over by then. */
const BEGINS_WITHIN_MS = 1_000

/** True if a worker was given this task just now. One that waits for longer has no worker that is free. */
const isBeginning = ({ task, attempt }: TaskNow, now: number): boolean =>
  task.state === 'DISPATCHED' && attempt !== undefined && now - Date.parse(attempt.dispatched_at) < BEGINS_WITHIN_MS

const counted = (count: number, word: string, paint: (text: string) => string): Cell[] =>
  count === 0 ? [] : [{ text: `${count} ${word}`, paint }]

const beganAt = ({ attempt }: TaskNow, now: number): number => (attempt?.started_at ? Date.parse(attempt.started_at) : now)

/** As wide as most times, so that names stand below each other. */
const TIME_WIDTH = 8

function runningRow(each: TaskNow, { usualMs, printed }: Progress, now: number): Cell[] {
  const { task } = each
  const usual = usualMs[task.asset_key ?? '']
  return [
    { text: `  ${durationText(now - beganAt(each, now)).padStart(TIME_WIDTH)}`, paint: colours.dim },
    { text: printable(task.task_key) },
    ...(task.attempt > 1 ? [{ text: `attempt ${task.attempt}`, paint: colours.yellow }] : []),
    ...(usual === undefined ? [] : [{ text: `usually ${durationText(usual)}`, paint: colours.dim }]),
    { text: printable(printed.get(task.task_key) ?? ''), paint: colours.dim },
  ]
}

/**
 * How long the run will take from now on, if as many tasks go on at a time as now. Each task takes as long as its asset usually does or,
 * for an asset without history, as its tasks did in this run. Undefined while that is unknown of a task.
 */
export function remainingMs({ tasks, usualMs }: Progress, now: number): number | undefined {
  const known = { ...averages(tasks), ...usualMs }
  let [sum, longest, atWork] = [0, 0, 0]
  for (const each of tasks) {
    if (each.task.finished_at !== null) continue
    const usual = known[each.task.asset_key ?? '']
    if (usual === undefined) return undefined
    const isRunning = each.task.state === 'RUNNING'
    const left = Math.max(0, isRunning ? usual - (now - beganAt(each, now)) : usual)
    if (isRunning || isBeginning(each, now)) atWork++
    longest = Math.max(longest, left)
    sum += left
  }
  const left = Math.max(longest, sum / Math.max(1, atWork))
  // Longer than usual: nobody knows how much longer.
  return left > 0 ? left : undefined
}

/** By asset, the average time of the tasks of this run that succeeded. */
function averages(tasks: readonly TaskNow[]): Record<string, number> {
  const times = new Map<string, number[]>()
  for (const { task, attempt } of tasks) {
    if (task.state !== 'SUCCEEDED' || !attempt?.started_at || !attempt.finished_at) continue
    const key = task.asset_key ?? ''
    times.set(key, [...(times.get(key) ?? []), Date.parse(attempt.finished_at) - Date.parse(attempt.started_at)])
  }
  return Object.fromEntries([...times].map(([key, own]) => [key, own.reduce((sum, ms) => sum + ms, 0) / own.length]))
}

/** An estimate to the second: digits behind it would promise too much. */
const roundText = (ms: number): string =>
  ms < 60_000 ? `${Math.max(1, Math.round(ms / 1_000))} s` : durationText(Math.round(ms / 1_000) * 1_000)
