import { z } from 'zod'
import { type AttemptResult, attemptResult } from '../../contract/dispatch.ts'

let compiled: typeof attemptResult | undefined

/** Checks what a worker process reported: user code can write there too. */
export function reportedResult(reported: unknown): AttemptResult {
  // To compile the schema costs less than it saves on two results, so it is done when the first arrives.
  compiled ??= z.compile(attemptResult) as typeof attemptResult
  const checked = compiled.safeParse(reported)
  return checked.success ? checked.data : badReport(checked.error.issues)
}

/** Not retryable: code that reports what cannot be would report it again. */
function badReport([issue]: readonly z.core.$ZodIssue[]): AttemptResult {
  const message = `What the attempt reported is not valid: ${issue?.path.join('.') || 'the report'} ${issue?.message}`
  return { outcome: 'FAILED', error: { category: 'invalid', message, retryable: false } }
}
