import type { ProjectProblem } from '../contract/definition.ts'
import { errorColours, printable } from './output.ts'

/** What is wrong with a project: where, what, and what to do. */
export function printProblems(problems: readonly ProjectProblem[]): void {
  for (const { file, line, column, message, hint } of problems) {
    const place = [file, line, column].filter((part) => part !== undefined && part !== null).join(':')
    process.stderr.write(
      `${errorColours.red('error:')} ${place ? `${errorColours.bold(printable(place))}  ` : ''}${printable(message)}\n`,
    )
    if (hint) for (const text of hint.split('\n')) process.stderr.write(`${errorColours.cyan('  hint:')} ${printable(text)}\n`)
  }
}
