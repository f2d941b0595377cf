import type { NewEvent } from '../../model/event.ts'
import type { SourceRef } from '../runs/trigger.ts'

/** A run as automation asks for it. */
export interface AutomationRequest {
  readonly run_key: string
  readonly asset_selection: readonly string[]
  readonly partition_selection: readonly string[] | null
  readonly labels: Readonly<Record<string, string>>
  readonly priority: number
  readonly source: SourceRef
  readonly after_run_ids?: readonly string[]
  readonly actor?: string
  readonly causation_id?: string
  readonly traceparent?: string
}

export interface RequestedRun {
  /** The id that the run will have. */
  readonly run_id: string
  readonly request_fingerprint: string
  readonly event: NewEvent
}

export type RequestRun = (request: AutomationRequest) => RequestedRun
