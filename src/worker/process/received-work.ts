import type { AttemptResultInput, DispatchEnvelope, ErrorCategory } from '../../contract/dispatch.ts'
import { errorLines, PROGRAM_ERROR } from '../../contract/error-detail.ts'
import type { ErrorDetail } from '../../contract/error-schema.ts'
import type { EvaluationReport, EvaluationRequest } from '../../contract/evaluation.ts'
import { logText } from '../../contract/log-text.ts'
import type { FromWorker, LogEntry } from '../../contract/pipe.ts'
import type { ProjectManifestInput } from '../../contract/project-manifest.ts'
import type { DescribingErrors } from '../../sdk/described-error.ts'
import { cancelledResult, failedResult } from '../attempt-results.ts'
import { AttemptLog } from './attempt-log.ts'
import { LastLines } from './last-lines.ts'
import type { ProcessSecrets } from './process-secrets.ts'

/** The services that a worker process offers an attempt or an evaluation. */
export interface AttemptContext {
  readonly signal: AbortSignal
  log(entry: LogEntry): void
  /** Passes on the output of a program that the attempt runs. */
  print(stream: 'stdout' | 'stderr', chunk: Uint8Array): void
}

export interface LoadedProject {
  readonly manifest: ProjectManifestInput
  /** Names of environment variables that it declares as secret. */
  readonly secretVariables: readonly string[]
  /** How errors of its code are described. */
  readonly describing: DescribingErrors
  execute(envelope: DispatchEnvelope, context: AttemptContext): Promise<AttemptResultInput>
  evaluate(request: EvaluationRequest, context: AttemptContext): Promise<EvaluationReport>
}

type WorkResult = Extract<FromWorker, { type: 'completed' }>['result']

/** Something that this process was sent: how it is done, what becomes of its output, and how it is reported if it fails. */
export interface ReceivedWork {
  readonly id: string
  run(context: AttemptContext): Promise<WorkResult>
  print(stream: 'stdout' | 'stderr', chunk: string | Uint8Array, level?: LogEntry['level']): void
  log(entry: LogEntry): void
  /** It ended so. No output counts any more. */
  end(result: WorkResult): void
  failed(category: ErrorCategory, message: string, detail?: ErrorDetail): WorkResult
  cancelled(): WorkResult
}

interface AttemptReports {
  readonly secrets: ProcessSecrets
  now(): number
  send(message: FromWorker): void
}

/** Sends its log as it is printed. */
export function attemptWork(
  { execute }: LoadedProject,
  envelope: DispatchEnvelope,
  { now, send, secrets }: AttemptReports,
): ReceivedWork {
  const id = envelope.attempt_id
  const log = new AttemptLog(now, (entries) => send({ type: 'log', id, entries }), secrets)
  return {
    id,
    run: (context) => execute(envelope, context),
    print: (stream, chunk, level) => log.print(stream, chunk, level),
    log: (entry) => log.add(entry),
    end: (result) => log.end(lastWords(result, now)),
    failed: failedResult,
    cancelled: cancelledResult,
  }
}

/** The log of an attempt that failed says why. Whoever cancelled it knows. */
function lastWords(result: WorkResult, now: () => number): LogEntry | undefined {
  if (result.outcome !== 'FAILED' || !result.error) return undefined
  const { message, stack, ...detail } = result.error
  // What a program printed is in the log already.
  const shown = detail.type === PROGRAM_ERROR ? detail : { ...detail, stack }
  return { at: now(), stream: 'stderr', level: 'error', text: errorLines(message, shown).join('\n') }
}

/** Keeps the end of its output, for an error, or for whoever watches. */
export function evaluationWork({ evaluate }: LoadedProject, request: EvaluationRequest, secrets: ProcessSecrets): ReceivedWork {
  const printed = new LastLines(secrets.newest)
  const withOutput = (error: string, unfit_field?: string): EvaluationReport => {
    const output = String(printed)
    return { outcome: 'error', error: output === '' ? error : `${error}\nIt printed:\n${output}`, unfit_field }
  }
  return {
    id: request.evaluation_id,
    async run(context) {
      const report = await evaluate(request, context)
      if (report.outcome === 'error') return withOutput(report.error, report.unfit_field)
      const output = String(printed)
      return output === '' || (report.outcome !== 'requests' && report.outcome !== 'condition')
        ? report
        : { ...report, printed: output }
    },
    print: (_, chunk) => printed.print(chunk),
    log: (entry) => printed.print(`${logText(entry)}\n`),
    end: () => undefined,
    failed: (_, message) => withOutput(message),
    cancelled: () => ({ outcome: 'cancelled' }),
  }
}
