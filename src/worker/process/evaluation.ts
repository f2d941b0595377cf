import { cutMiddle, errorLines } from '../../contract/error-detail.ts'
import type { EvaluationReport, EvaluationRequest } from '../../contract/evaluation.ts'
import { type DescribingErrors, describeError } from '../../sdk/described-error.ts'
import { type EvaluatedProject, evaluate, unfitField } from '../../sdk/evaluation/evaluate.ts'
import type { AttemptContext } from './received-work.ts'

/** More than an event can keep: what is larger must not fill the pipe and the memory of the server. */
const MAX_REPORT_CHARACTERS = 4 * 2 ** 20

/** Enough for a message with the beginning of its details, small enough for a list of errors. */
const MAX_ERROR_CHARACTERS = 4_000

export interface EvaluatingOptions {
  readonly describing: DescribingErrors
  readonly now: () => number
}

/** How a worker evaluates code of its project. Never throws: an error of the code is a report. */
export async function evaluateCode(
  project: EvaluatedProject,
  request: EvaluationRequest,
  { signal, log }: AttemptContext,
  { describing, now }: EvaluatingOptions,
): Promise<EvaluationReport> {
  const warn = (text: string): void => log({ at: now(), stream: 'log', level: 'warn', text })
  try {
    const report = await evaluate(project, request, { signal, warn })
    const size = JSON.stringify(report).length
    return size <= MAX_REPORT_CHARACTERS ? report : { outcome: 'error', error: tooLarge(size) }
  } catch (error) {
    return { outcome: 'error', error: explainError(error, describing), unfit_field: unfitField(error) }
  }
}

const tooLarge = (size: number): string =>
  `The result has ${size} characters as JSON, and ${MAX_REPORT_CHARACTERS} are possible. Ask for fewer runs at a time, and keep only a position in the cursor.`

/** With the place in the author's own code, and what led to it. */
function explainError(error: unknown, describing: DescribingErrors): string {
  const { message, ...detail } = describeError(error, describing)
  return cutMiddle(errorLines(message, detail).join('\n'), MAX_ERROR_CHARACTERS)
}
