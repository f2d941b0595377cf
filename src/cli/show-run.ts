import type { RunEvent, WireRow } from '../api/run-contract.ts'
import { colours, print, printable } from './output.ts'

const paint: Readonly<Record<string, (text: string) => string>> = {
  SUCCEEDED: colours.green,
  FAILED: colours.red,
  CANCELLED: colours.yellow,
  SKIPPED: colours.dim,
  RETRY_WAIT: colours.yellow,
  RUNNING: colours.cyan,
}

export const painted = (state: unknown): string => (paint[String(state)] ?? colours.dim)(String(state).toLowerCase())

/** As wide as `width`, however many invisible characters its colour has. */
export const pad = (shown: string, plain: unknown, width: number): string =>
  shown + ' '.repeat(Math.max(0, width - String(plain).length))

/** How long something took, in the unit a person would choose. */
export function took(from: unknown, to: unknown): string {
  if (typeof from !== 'string' || typeof to !== 'string') return ''
  const ms = Date.parse(to) - Date.parse(from)
  if (ms < 1_000) return `${ms} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`
}

export const shortId = (runId: unknown): string => String(runId).slice(0, 12)

/** Prints what happens in a run, a line each: states of tasks as they change, and what they say. */
export class RunPrinter {
  readonly #seen = new Map<string, string>()
  readonly #quiet: boolean

  constructor(options: { quiet?: boolean } = {}) {
    this.#quiet = options.quiet ?? false
  }

  /** The run as of this event, when it is one about the run. */
  show(event: RunEvent): WireRow | undefined {
    if (event.type === 'run') return event.run
    if (event.type === 'log') {
      if (!this.#quiet) for (const { text } of event.entries) this.#say(event.task_key, text)
      return undefined
    }
    this.#showTask(event.task)
    return undefined
  }

  #showTask(task: WireRow): void {
    const key = String(task['task_key'])
    const state = String(task['state'])
    const now = `${state} ${task['attempt']}`
    if (this.#seen.get(key) === now) return
    this.#seen.set(key, now)
    // What waits is no news.
    if (['PLANNED', 'BLOCKED', 'READY', 'DISPATCHED'].includes(state)) return
    const attempt = Number(task['attempt']) > 1 ? colours.dim(` (attempt ${task['attempt']})`) : ''
    const why = task['error_message'] && state !== 'SUCCEEDED' ? `  ${firstLine(String(task['error_message']))}` : ''
    const cause = state === 'SKIPPED' && task['cause_task_key'] ? colours.dim(`  because of ${task['cause_task_key']}`) : ''
    print(`  ${pad(painted(state), state, 11)} ${printable(key)}${attempt}${printable(why)}${cause}`)
  }

  #say(taskKey: string, text: string): void {
    for (const line of text.replace(/\n$/, '').split('\n'))
      print(`  ${colours.dim(`${printable(taskKey)} │`)} ${printable(line)}`)
  }
}

export const firstLine = (text: string): string => text.split('\n', 1)[0] as string

/** How a run ended, in one line. */
export function summary(run: WireRow): string {
  const counts = (['succeeded', 'failed', 'skipped', 'cancelled'] as const)
    .map((name) => [name, Number(run[`tasks_${name}`] ?? 0)] as const)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name}`)
  const time = took(run['started_at'] ?? run['requested_at'], run['finished_at'])
  const error = run['error'] ? `\n  ${printable(String(run['error']))}` : ''
  return `${painted(run['state'])} ${shortId(run['run_id'])}  ${counts.join(', ')}${time ? colours.dim(`  in ${time}`) : ''}${error}`
}
