import type { RequestedRun } from '../../domain/automation/request-run.ts'
import { type RequestedWork, requestFingerprint, runIdFromRunKey, type TenantSecret } from '../../domain/runs/run-ids.ts'
import { RunRequested } from '../../domain/runs/run-requested.event.ts'
import type { SourceRef } from '../../domain/runs/trigger.ts'
import type { Scope } from '../../engine/paths.ts'
import { newEvent } from '../../model/event.ts'

export interface NewRun extends RequestedWork {
  readonly run_key: string
  /** Of the request as it was made, if the selections are what came of it. */
  readonly request_fingerprint?: string
  readonly source: SourceRef
  readonly priority?: number
  /** Runs that must have ended before this one is planned. */
  readonly after_run_ids?: readonly string[]
  readonly causation_id?: string
  readonly actor?: string
  readonly traceparent?: string | undefined
}

/** The fact that a run was requested, and the id the run will have. */
export function runRequested(scope: Scope, secret: TenantSecret, request: NewRun): RequestedRun {
  const request_fingerprint = request.request_fingerprint ?? requestFingerprint(request)
  const run_id = runIdFromRunKey(scope.tenant_id, scope.workspace_id, request.run_key, secret)
  const event = newEvent(
    RunRequested,
    {
      run_key: request.run_key,
      run_id,
      secret_id: secret.id,
      request_fingerprint,
      asset_selection: [...request.asset_selection],
      partition_selection: request.partition_selection ? [...request.partition_selection] : null,
      trigger_source_ref: request.source,
      labels: request.labels ?? {},
      priority: request.priority ?? 0,
      after_run_ids: request.after_run_ids ? [...request.after_run_ids] : null,
    },
    {
      correlation_id: run_id,
      ...(request.actor !== undefined && { actor: request.actor }),
      ...(request.causation_id !== undefined && { causation_id: request.causation_id }),
      ...(request.traceparent !== undefined && { traceparent: request.traceparent }),
    },
  )
  return { run_id, request_fingerprint, event }
}
