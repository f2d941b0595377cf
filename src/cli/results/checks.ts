import type { WireAttempt } from '../../api/run-contract.ts'
import { type CheckState, checkState, checksIn, findingText, type ReportedCheck } from '../../contract/reported-check.ts'
import { colours, print, printable } from '../output.ts'
import type { TaskNow } from './failures.ts'

/** What became of one check, in a line: `check one row per id failed: 3 duplicate values of id: 7, 9, 12`. */
export function checkLine(check: ReportedCheck): string {
  const outcome = checkState(check)
  const found = findingText(check)
  return `check ${printable(check.name)} ${paint[outcome](outcome)}${found === '' ? '' : `: ${printable(found)}`}`
}

const paint: Record<CheckState, (text: string) => string> = {
  passed: colours.green,
  warned: colours.yellow,
  failed: colours.red,
}

/** The checks of an attempt that did not pass, a line each. */
export const findingLines = (attempt: Pick<WireAttempt, 'output'> | undefined): string[] =>
  checksIn(attempt?.output)
    .filter(({ ok }) => !ok)
    .map(checkLine)

export const warningsOf = (all: readonly TaskNow[]): number =>
  all.flatMap(({ attempt }) => checksIn(attempt?.output)).filter((check) => checkState(check) === 'warned').length

/** As many as one reads; `--json` has them all. */
const SHOWN = 20

/** Prints below a run what its checks found, and how many passed; nothing if there are none. */
export function printChecks(all: readonly TaskNow[]): void {
  const checks = all.flatMap(({ task, attempt }) => checksIn(attempt?.output).map((check) => ({ task, check })))
  if (checks.length === 0) return
  const counts = (['passed', 'warned', 'failed'] as const)
    .map((outcome) => [outcome, checks.filter(({ check }) => checkState(check) === outcome).length] as const)
    .filter(([, count]) => count > 0)
    .map(([outcome, count]) => `${count} ${paint[outcome](outcome)}`)
  print(`  checks: ${counts.join(', ')}`)
  const found = checks.filter(({ check }) => !check.ok)
  for (const { task, check } of found.slice(0, SHOWN)) print(`    ${printable(task.task_key)}  ${checkLine(check)}`)
  if (found.length > SHOWN) print(colours.dim(`    and ${found.length - SHOWN} more`))
}

/** The same for programs. */
export const checksOf = (all: readonly TaskNow[]): object[] =>
  all.flatMap(({ task, attempt }) =>
    checksIn(attempt?.output).map((check) => ({ task_key: task.task_key, ...check, outcome: checkState(check) })),
  )
