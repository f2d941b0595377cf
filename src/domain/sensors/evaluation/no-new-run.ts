import type { RunOfEvaluation } from '../../../contract/delivery.ts'

/** How runs and moments are written where the text is shown. */
export interface Writing {
  readonly run?: (runId: string) => string
  readonly when: (moment: string) => string
}

/** Why a request made no new run. In a file of its own: commands need it without the schemas of requests. */
export function whyNoNewRun({ run_id, run_key, key, conflict, requested_at }: RunOfEvaluation, { run, when }: Writing): string {
  const by = `by ${run?.(run_id) ?? run_id} at ${when(requested_at)}`
  return conflict
    ? `key ${key ?? run_key} was used for another request ${by} (servo conflicts)`
    : `key ${key ?? run_key} was used ${by}`
}
