import { errorLines } from '../contract/error-detail.ts'
import type { ProjectProblem } from '../contract/project-manifest.ts'
import { errorColours, printable, speaksJson } from './output.ts'

/** Prints the problems of a project: where, what, and what to do. */
export function printProblems(problems: readonly ProjectProblem[]): void {
  if (speaksJson()) {
    const error = { kind: 'invalid', code: 'project_not_loaded', message: 'the project cannot be loaded', problems }
    process.stderr.write(`${JSON.stringify({ error })}\n`)
    return
  }
  for (const { file, line, column, message, hint, detail } of problems) {
    const place = [file, line, column].filter((part) => part !== undefined && part !== null).join(':')
    process.stderr.write(
      `${errorColours.red('error:')} ${place ? `${errorColours.bold(printable(place))}  ` : ''}${printable(message)}\n`,
    )
    // The first line is the message, which stands above.
    for (const each of detail ? errorLines(message, detail).slice(message.split('\n').length) : [])
      process.stderr.write(`  ${errorColours.dim(printable(each))}\n`)
    if (hint) process.stderr.write(`${errorColours.cyan('hint:')} ${printable(indentHint(hint))}\n`)
  }
}

/** Code and pictures in a hint keep their shape. */
const indentHint = (hint: string): string => hint.trimEnd().replaceAll(/\n(?=.)/g, '\n      ')
