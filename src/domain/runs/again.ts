import { sha256 } from '../../lib/hash.ts'
import type { RunState } from './runs.table.ts'
import { evaluationOf, type SourceRef } from './trigger.ts'

/** What is known of the run of a key. */
export interface RunOfKey {
  readonly run_id: string
  readonly state: RunState
  readonly request_fingerprint: string
}

/** A request by key, and its source: as it was made, or as the rerun of a run that failed under that key. */
export interface KeyedRequest {
  readonly run_key: string
  readonly request_fingerprint: string
  readonly source: SourceRef
}

/** Short, because a key may be long; which key it was is told by the run that failed. */
const againId = (runKey: string): string => `again:${sha256(runKey).slice(0, 16)}`

/**
 * The key under which a run key is asked for once more after its run failed. It is the same however often one asks: a failed run has one
 * such rerun, and if that fails too, its own key leads to the next.
 */
export const againKey = (runKey: string, failedRunId: string): string => `rerun:${failedRunId}:${againId(runKey)}`

/**
 * A run key has one run for ever. Asking again for the key of a run that failed is therefore a rerun of it, under a key of its own. A
 * request for other work stays as it is, and is a conflict; one for a run that did not fail gets that run.
 */
export function requestByKey(request: KeyedRequest, runOf: (runKey: string) => RunOfKey | undefined): KeyedRequest {
  const asked_by = evaluationOf(request.source) ?? null
  let current = request
  for (;;) {
    const run = runOf(current.run_key)
    if (run?.state !== 'FAILED' || run.request_fingerprint !== request.request_fingerprint) return current
    const { run_id } = run
    const source = { type: 'rerun', run_id, request_id: againId(current.run_key), mode: 'all', asked_by } as const
    current = { ...request, run_key: againKey(current.run_key, run_id), source }
  }
}
