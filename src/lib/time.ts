import { ServoError } from './error.ts'

// Facts come in batches, and those of a batch were received in the same millisecond.
let lastMs = 0
let lastIso = '1970-01-01T00:00:00.000Z'

/** Milliseconds of an ISO 8601 UTC text such as `2025-01-15T10:00:00.000Z`. */
export function toMs(iso: string): number {
  if (iso === lastIso) return lastMs
  const ms = Date.parse(iso)
  if (Number.isNaN(ms))
    throw new ServoError('invalid', 'bad_timestamp', `${JSON.stringify(iso.slice(0, 40))} is not a timestamp`, {
      hint: 'Write UTC time as 2025-01-15T10:00:00.000Z.',
    })
  return ms
}

export function toIso(ms: number): string {
  if (ms !== lastMs) {
    const date = new Date(ms)
    lastIso = date.toISOString()
    lastMs = date.getTime()
  }
  return lastIso
}

/** `2025-01-15`, the UTC day of a moment. */
export function utcDay(ms: number): string {
  return toIso(ms).slice(0, 10)
}

const DAY = /^\d{4}-\d{2}-\d{2}$/

/** True for text of the form that `utcDay` returns. */
export const isUtcDay = (text: string): boolean => DAY.test(text)

export const SECOND_MS = 1_000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS
