import type { WireAttempt, WireTask } from '../../api/run-contract.ts'
import { errorLines, PROGRAM_ERROR } from '../../contract/error-detail.ts'
import { counted } from '../../lib/text/counted.ts'
import { colours, print, printable } from '../output.ts'

/** A task as it is now, with its newest attempt. */
export interface TaskNow {
  readonly task: WireTask
  readonly attempt?: WireAttempt | undefined
}

/** As many as one reads; `servo runs show --json` has them all. */
const SHOWN_FAILURES = 10
/** A message may quote a whole page. */
const SHOWN_LINES = 40

/** Longer ones are a page that a server answered with, or a query. */
const SHOWN_WIDTH = 500

const shortened = (line: string): string => (line.length > SHOWN_WIDTH ? `${line.slice(0, SHOWN_WIDTH)}…` : line)

/** What went wrong in the last attempt of a task, a line each; nothing if nothing did. */
export function failureLines({ task, attempt }: TaskNow): string[] {
  const message = task.error_message ?? attempt?.error_message
  if (!message || (task.state !== 'FAILED' && task.state !== 'RETRY_WAIT')) return []
  const lines = errorLines(message, withoutOutput(attempt?.error_detail))
  const more = lines.length > SHOWN_LINES ? [`… and ${counted(lines.length - SHOWN_LINES, 'more line')}`] : []
  return [...lines.slice(0, SHOWN_LINES), ...more].map((line) => printable(shortened(line)))
}

/** As much of the output of a program as says why it failed, and where the asset is declared. All of it was printed while the program ran, and is in the log. */
const SHOWN_OUTPUT = 5

function withoutOutput(detail: WireAttempt['error_detail'] | undefined): WireAttempt['error_detail'] | undefined {
  const printed = detail?.type === PROGRAM_ERROR ? (detail.stack?.split('\n') ?? []) : []
  if (!detail || printed.length <= SHOWN_OUTPUT) return detail
  return { ...detail, stack: ['…', ...printed.slice(-SHOWN_OUTPUT)].join('\n') }
}

/** Prints below a run, or at its end, what went wrong in each task that failed. */
export function printFailures(all: readonly TaskNow[], runId: string): void {
  const failed = all.filter(({ task }) => task.state === 'FAILED')
  for (const each of failed.slice(0, SHOWN_FAILURES)) {
    const attempt = each.task.attempt > 1 ? colours.dim(`  attempt ${each.task.attempt}`) : ''
    print(`  ${colours.red(printable(each.task.task_key))}${attempt}`)
    for (const line of failureLines(each)) print(`    ${line}`)
  }
  if (failed.length > SHOWN_FAILURES)
    print(colours.dim(`  and ${failed.length - SHOWN_FAILURES} more that failed: servo runs show ${runId} --json`))
}

/** The same for programs. */
export const failuresOf = (all: readonly TaskNow[]): object[] =>
  all
    .filter(({ task }) => task.state === 'FAILED')
    .map(({ task, attempt }) => ({
      task_key: task.task_key,
      attempt: task.attempt,
      error_category: attempt?.error_category ?? null,
      error_message: task.error_message,
      error_detail: attempt?.error_detail ?? null,
    }))
