import type { AttemptResultInput, ErrorCategory } from '../../contract/dispatch.ts'
import { isServoError } from '../../lib/error.ts'
import { isFatal, retryAfterMs } from '../declare/failure.ts'
import { type DescribingErrors, describeError } from '../described-error.ts'

/** Invalid data may be better next time; any other kind of invalid is a mistake in code or configuration, and stays one. */
const mayPass = ['row_does_not_fit', 'metadata_does_not_fit', 'check_failed']

export interface Failing {
  readonly signal: AbortSignal
  readonly retryOn: (error: unknown) => boolean
  readonly describing: DescribingErrors
}

/** The outcome of an attempt that threw: the report, and the thrown error. */
export function failureOf(
  error: unknown,
  output: AttemptResultInput['output'],
  { signal, retryOn, describing }: Failing,
): { result: AttemptResultInput; error: unknown } {
  const timedOut = signal.aborted && signal.reason instanceof Error && signal.reason.name === 'TimeoutError'
  const thrown = describeError(error, describing)
  if (signal.aborted && !timedOut)
    return { result: { outcome: 'CANCELLED', output, error: { category: 'user', ...thrown, retryable: false } }, error }
  const category = timedOut ? 'timeout' : categoryOf(error)
  const described = {
    category,
    ...thrown,
    retryable: isRetryable(error, category, retryOn),
    retry_after_ms: retryAfterMs(error),
  }
  return { result: { outcome: 'FAILED', output, error: described }, error }
}

function categoryOf(error: unknown): ErrorCategory {
  if (isFatal(error)) return 'fatal'
  if (isServoError(error, 'invalid')) return 'invalid'
  if (isServoError(error, 'unavailable') || isServoError(error, 'corrupt')) return 'infrastructure'
  return 'user'
}

function isRetryable(error: unknown, category: ErrorCategory, retryOn: (error: unknown) => boolean): boolean {
  if (category === 'fatal') return false
  if (isServoError(error, 'invalid') && !mayPass.includes(error.code)) return false
  try {
    return retryAfterMs(error) !== undefined || retryOn(error)
  } catch {
    // An error in the filter must not turn a temporary failure into a permanent one.
    return true
  }
}
