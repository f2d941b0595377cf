import { MINUTE_MS, SECOND_MS } from '../../lib/time.ts'

/** A first failure is often a passing one. */
const FIRST_BACKOFF_MS = 5 * SECOND_MS
/** Short enough that a source that is back is noticed before anybody asks. */
const MAX_BACKOFF_MS = 10 * MINUTE_MS

/** How long polls rest after so many errors in a row: it doubles with each, up to ten minutes. */
export const errorBackoffMs = (errors: number): number =>
  errors <= 0 ? 0 : Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(errors - 1, 30))
