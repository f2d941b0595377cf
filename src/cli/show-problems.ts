import type { Colors } from 'picocolors/types.js'
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
  for (const line of problemLines(problems, errorColours)) process.stderr.write(`${line}\n`)
}

/** The same as lines. */
export function problemLines(problems: readonly ProjectProblem[], colours: Colors): string[] {
  return problems.flatMap(({ file, line, column, message, hint, detail }) => {
    const place = [file, line, column].filter((part) => part !== undefined && part !== null).join(':')
    // The first line is the message, which stands above.
    const details = detail ? errorLines(message, detail).slice(message.split('\n').length) : []
    return [
      `${colours.red('error:')} ${place ? `${colours.bold(printable(place))}  ` : ''}${printable(message)}`,
      ...details.map((each) => `  ${colours.dim(printable(each))}`),
      ...(hint ? [`${colours.cyan('hint:')} ${printable(indentHint(hint))}`] : []),
    ]
  })
}

/** Code and pictures in a hint keep their shape. */
const indentHint = (hint: string): string => hint.trimEnd().replaceAll(/\n(?=.)/g, '\n      ')
