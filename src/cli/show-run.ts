import type { RunEvent, WireAttempt, WireRun, WireTask } from '../api/run-contract.ts'
import { messageWithCause } from '../contract/error-detail.ts'
import { logText } from '../contract/log-text.ts'
import { counted } from '../lib/text/counted.ts'
import { type Cell, line } from './columns.ts'
import { colours, print, printable } from './output.ts'
import { findingLines } from './results/checks.ts'

const paint: Readonly<Record<string, (text: string) => string>> = {
  SUCCEEDED: colours.green,
  FAILED: colours.red,
  CANCELLED: colours.yellow,
  RETRY_WAIT: colours.yellow,
  RUNNING: colours.cyan,
}
/** States that users know by another word than the stored name. */
const words: Readonly<Record<string, string>> = { RETRY_WAIT: 'retrying' }

export const stateCell = (state: string): Cell => ({
  text: words[state] ?? state.toLowerCase(),
  paint: paint[state] ?? colours.dim,
})

/** When something happened, if it did. */
type Moment = string | null | undefined

/** How long something took; nothing while it is not over. */
function took(from: Moment, to: Moment): string {
  return typeof from === 'string' && typeof to === 'string' ? durationText(Date.parse(to) - Date.parse(from)) : ''
}

/** A time in the unit a person would choose. */
export function durationText(time: number): string {
  const ms = Math.max(0, Math.round(time))
  if (ms < 1_000) return `${ms} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  const minutes = Math.floor(Math.round(ms / 1_000) / 60)
  const two = (number: number): string => String(number).padStart(2, '0')
  if (minutes < 60) return `${minutes}m ${two(Math.round(ms / 1_000) % 60)}s`
  return `${Math.floor(minutes / 60)}h ${two(minutes % 60)}m`
}

export const timeCell = (from: Moment, to: Moment): Cell => ({ text: took(from, to), paint: colours.dim, right: true })

/** Local time in sortable order: 2025-01-15 10:00:00. */
export const localTime = (moment: string | null): string => (moment === null ? '' : new Date(moment).toLocaleString('sv-SE'))

/** The zone in which this machine shows time. */
export const localZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone

export const AUTOMATION_OFF =
  'automation is off: the running process evaluates no schedules and no sensors (servo dev --no-automation, or servo run)'

export const shortId = (runId: string): string => runId.slice(0, 12)

/** As wide as the longest state and the longest time, so that lines align as they come. */
const TASK_WIDTHS = [9, 7]
/** Waiting tasks are not shown. */
const isNews = (state: string): boolean => !['PLANNED', 'BLOCKED', 'READY', 'DISPATCHED'].includes(state)

/** One line about a task that is doing something: state, time, name, and why; undefined when it waits. */
export function taskLine(task: WireTask, attempt: WireAttempt | undefined): string | undefined {
  if (!isNews(task.state)) return undefined
  const time = timeCell(attempt?.started_at, attempt?.finished_at)
  return line([stateCell(task.state), time, { text: printable(task.task_key) }, notesCell(task, attempt)], TASK_WIDTHS)
}

/** It stands in a line with others; all of it is shown at the end. */
const MAX_WHY = 300

/** The attempt, and the reason for its state. */
export function notesCell(task: WireTask, last: WireAttempt | undefined): Cell {
  const attempt = task.attempt > 1 ? `attempt ${task.attempt}` : ''
  const error = task.state === 'SUCCEEDED' ? null : task.error_message
  const why = error ? messageWithCause(error, last?.error_detail).slice(0, MAX_WHY) : ''
  const cause = task.cause_task_key ? `because of ${task.cause_task_key}` : ''
  const overlap = task.overlap_run_id ? `${task.overlap_run_id} was making it (overlap: skip)` : ''
  return { text: printable([attempt, why, cause, overlap].filter(Boolean).join('  ')), paint: colours.dim }
}

export const firstLine = (text: string): string => text.split('\n', 1)[0] ?? ''

/** Prints what happens in a run, one line each: changes of tasks, and their output. */
export class RunPrinter {
  readonly #seen = new Map<string, string>()

  show(event: Exclude<RunEvent, { type: 'run' }>): void {
    if (event.type === 'task') this.#showTask(event.task, event.attempt)
    else for (const entry of event.entries) this.#say(event.task_key, logText(entry))
  }

  #showTask(task: WireTask, attempt: WireAttempt | undefined): void {
    const now = `${task.state} ${task.attempt}`
    if (this.#seen.get(task.task_key) === now) return
    this.#seen.set(task.task_key, now)
    const text = taskLine(task, attempt)
    if (text !== undefined) print(`  ${text}`)
    for (const finding of findingLines(attempt)) print(`    ${finding}`)
  }

  #say(taskKey: string, text: string): void {
    const begin = `  ${colours.dim(`${printable(taskKey)} │`)} `
    const lines = text.replace(/\n$/, '').split('\n')
    // In one write: a program may print a million lines, and a write for each would hold it up.
    print(lines.map((each) => begin + printable(each)).join('\n'))
  }
}

/** The end of a run, as one more line below those of its tasks. */
export function runEndLine(run: WireRun, warnings: number): string {
  const why = { text: [warningsText(warnings), printable(firstLine(run.error ?? ''))].filter(Boolean).join('  ') }
  return line([stateCell(run.state), runTimeCell(run), { text: counts(run), paint: colours.bold }, why], TASK_WIDTHS)
}

export const runTimeCell = (run: WireRun): Cell => timeCell(run.started_at ?? run.requested_at, run.finished_at)

/** How far a run is, or how it ended, in one line. */
export function summary(run: WireRun, warnings: number): string {
  const { text, paint: colour } = stateCell(run.state)
  const warned = warnings === 0 ? '' : ` ${colours.yellow(warningsText(warnings))}`
  const { text: time } = runTimeCell(run)
  const error = run.error ? `\n  ${printable(run.error)}` : ''
  const cancelled = cancellation(run)
  return `${colour?.(text)}${warned}  ${shortId(run.run_id)}  ${counts(run)}${time ? colours.dim(` in ${time}`) : ''}${cancelled}${error}`
}

/** What Ctrl-C is on record as. */
export const INTERRUPTED = 'interrupted at the terminal'

/** Who cancelled a run, and why. Whoever pressed Ctrl-C knows. */
function cancellation({ cancel_requested_by: by, cancel_reason: reason }: WireRun): string {
  if (by === null || reason === INTERRUPTED) return ''
  const [, asset] = /^asset:(.*)$/s.exec(by) ?? []
  const who =
    asset === undefined ? `cancelled by ${by}${reason ? `: ${reason}` : ''}` : `${reason} (overlap of ${asset}: replace)`
  return `\n  ${printable(who)}`
}

/** Warnings do not change how a run ends, but whoever reads its end should know of them. */
const warningsText = (count: number): string => (count === 0 ? '' : `with ${counted(count, 'warning')}`)

function counts(run: WireRun): string {
  const total = run.tasks_total
  const parts = (['succeeded', 'failed', 'skipped', 'cancelled'] as const)
    .map((name) => [name, run[`tasks_${name}`]] as const)
    .filter(([, count]) => count > 0)
  // A state says what became of all tasks, unless they were skipped: then the run succeeded with nothing done. A run fails with the
  // first task that does, so it says how many did.
  const isSaid = parts[0]?.[0] !== 'skipped' && parts[0]?.[0] !== 'failed'
  if (parts.length === 1 && parts[0]?.[1] === total && isSaid) return tasksText(total)
  if (parts.length === 0) return tasksText(total)
  return parts.map(([name, count]) => `${count} ${name}`).join(', ')
}

export const tasksText = (count: number): string => counted(count, 'task')
