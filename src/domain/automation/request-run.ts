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
}

/** Makes the request, with the id that the run will have. */
export type RequestRun = (request: AutomationRequest) => { readonly run_id: string; readonly event: NewEvent }
