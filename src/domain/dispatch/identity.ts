import { base32 } from '../../lib/base32.ts'
import { sha256Bytes } from '../../lib/hash.ts'

/**
 * Ids come in pairs: one to read, with colons, and one that every queue accepts. Google's task ids allow no colons and
 * are slow with a common prefix; a hash has neither problem.
 */
export function queueSafeId(prefix: 'd' | 't' | 'a', readableId: string): string {
  return `${prefix}_${base32(sha256Bytes(readableId)).slice(0, 26)}`
}

export const dispatchId = (runId: string, taskKey: string, attempt: number): string => `dispatch:${runId}:${taskKey}:${attempt}`

/** Derived, so that two controllers that both start an attempt start the same one. */
export const attemptId = (runId: string, taskKey: string, attempt: number): string =>
  queueSafeId('a', `attempt:${runId}:${taskKey}:${attempt}`)
