import type { AttemptResult, ErrorCategory } from '../contract/dispatch.ts'
import type { ErrorDetail } from '../contract/error-schema.ts'

/** A worker process that leaves without an attempt exits with this code: attempts that it was sent meanwhile have not begun. */
export const LEFT_IDLE = 75

/** The reason that an attempt is given when its time is up, so that code can distinguish a timeout from a cancellation. */
export const TIMED_OUT = 'its timeout has passed'

export function failedResult(category: ErrorCategory, message: string, detail: ErrorDetail = {}): AttemptResult {
  return { outcome: 'FAILED', error: { category, message, ...detail, retryable: true } }
}

export const cancelledResult = (): AttemptResult => ({ outcome: 'CANCELLED' })
