import type { AttemptResultInput } from '../../contract/dispatch.ts'
import type { EvaluationReport } from '../../contract/evaluation.ts'
import type { LogEntry } from '../../contract/pipe.ts'
import type { ProjectProblem } from '../../contract/project-manifest.ts'
import { sha256 } from '../../lib/hash.ts'
import { Redactor, secretsOf } from '../../lib/redactor.ts'

type WorkResult = AttemptResultInput | EvaluationReport

/** Code rarely gets a new secret, and a value that quotes it at once is rarer still. */
const LOOK_AGAIN_MS = 1_000

/**
 * The secrets that code of this process may quote. They are taken out here, before anything is sent: what the leader gets, it
 * writes down for ever. Values that assets return are theirs and stay as they are.
 */
export class ProcessSecrets {
  readonly #redactor = new Redactor()
  #declared: readonly string[] = []
  #lookedAt = 0

  constructor() {
    this.#look()
  }

  /** Names of variables that the project declares as secret. */
  declare(names: readonly string[]): void {
    this.#declared = names
    this.#look()
  }

  /** With what was known when last looked: the environment is not read for every line. */
  get text(): (text: string) => string {
    return this.#redactor.text
  }

  /** For an error, which may quote what code has put into its environment a moment ago. */
  readonly newest = (text: string): string => {
    this.#look()
    return this.#redactor.text(text)
  }

  /** True if there is a secret in a value. Most values are small and many, and reading the environment takes longer than making one. */
  readonly isIn = (text: string): boolean => {
    if (performance.now() - this.#lookedAt > LOOK_AGAIN_MS) this.#look()
    return this.#redactor.text(text) !== text
  }

  entries(entries: readonly LogEntry[]): LogEntry[] {
    this.#look()
    return entries.map((entry) => ({
      ...entry,
      text: this.text(entry.text),
      ...(entry.fields !== undefined && { fields: this.#redactor.members(entry.fields) }),
    }))
  }

  problems(problems: readonly ProjectProblem[]): ProjectProblem[] {
    this.#look()
    return problems.map(({ message, hint, ...problem }) => ({
      ...problem,
      message: this.text(message),
      ...(hint && { hint: this.text(hint) }),
    }))
  }

  result(result: WorkResult): WorkResult {
    if (result.outcome === 'error') return { ...result, error: this.newest(result.error) }
    if (result.outcome === 'condition' || result.outcome === 'requests') return this.#evaluation(result)
    return 'error' in result || 'output' in result ? this.#attempt(result) : result
  }

  #evaluation<Report extends { readonly printed?: string | undefined }>(report: Report): Report {
    const { printed } = report
    const reason = 'reason' in report && typeof report.reason === 'string' ? { reason: this.newest(report.reason) } : {}
    return { ...report, ...reason, ...(printed !== undefined && { printed: this.newest(printed) }) }
  }

  #attempt(result: AttemptResultInput): AttemptResultInput {
    const { error, output } = result
    const { metadata = {}, checks = [], data_version: version } = output ?? {}
    // Most attempts say nothing, and then nothing is looked for: their version is the checksum of what they stored.
    const saysVersion = typeof version === 'string' && version !== output?.sha256
    if (!error && !saysVersion && Object.keys(metadata).length === 0 && checks.length === 0) return result
    this.#look()
    const text = (words: string | null | undefined): string | null | undefined => words && this.text(words)
    return {
      ...result,
      ...(output && {
        output: {
          ...output,
          ...(saysVersion && { data_version: this.#version(version) }),
          metadata: this.#redactor.members(metadata),
          checks: checks.map((check) => ({
            ...check,
            name: this.text(check.name),
            metadata: check.metadata && this.#redactor.members(check.metadata),
          })),
        },
      }),
      ...(error && {
        error: {
          ...error,
          message: this.text(error.message),
          type: text(error.type),
          code: text(error.code),
          stack: text(error.stack),
          causes: error.causes?.map((cause) => ({ ...cause, message: this.text(cause.message), stack: text(cause.stack) })),
        },
      }),
    }
  }

  /** Versions are compared. So one with a secret in it becomes a hash of itself: the same for the same data, another for other data. */
  #version(version: string): string {
    return this.text(version) === version ? version : sha256(version)
  }

  #look(): void {
    this.#lookedAt = performance.now()
    this.#redactor.learn(secretsOf(process.env, this.#declared))
  }
}
