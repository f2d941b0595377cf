import { base32 } from '../../lib/base32.ts'
import { sha256Bytes } from '../../lib/hash.ts'

/**
 * Ids come in pairs: one to read, with colons, and one that every queue accepts. Google's task ids allow no colons and
 * are slow with a common prefix; a hash has neither problem.
 */
export function queueSafeId(prefix: 'd' | 't' | 'a' | 'alert', readableId: string): string {
  return `${prefix}_${base32(sha256Bytes(readableId), 26)}`
}

export const dispatchId = (runId: string, taskKey: string, attempt: number): string => `dispatch:${runId}:${taskKey}:${attempt}`

/** Derived, so that two controllers that both start an attempt start the same one. */
export function attemptId(runId: string, taskKey: string, attempt: number): string {
  const readableId = `attempt:${runId}:${taskKey}:${attempt}`
  // The controller that requests a dispatch and the fold that records it compute the same id one after the other.
  let id = recent.get(readableId)
  if (id === undefined) {
    id = queueSafeId('a', readableId)
    if (recent.size >= MAX_RECENT) recent.clear()
    recent.set(readableId, id)
  }
  return id
}
const recent = new Map<string, string>()
const MAX_RECENT = 4_096
