import type { EventContext } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { runs } from './runs.table.ts'

/** What a fact about a run says of where it belongs. Its reporter may be in a trace of its own; otherwise the trace of the run counts. */
export function aboutRun(rows: Rows, runId: string, told?: string): EventContext {
  const traceparent = told ?? rows.hot(runs).get(runId)?.traceparent
  return traceparent == null ? { correlation_id: runId } : { correlation_id: runId, traceparent }
}

/**
 * The same of what a controller decides. Its cause is the event that made the row as it is on which it decides: every row has the
 * id of that in `row_version`.
 */
export function becauseOf(rows: Rows, row: { readonly run_id: string; readonly row_version: string }): EventContext {
  return { ...aboutRun(rows, row.run_id), causation_id: row.row_version }
}
