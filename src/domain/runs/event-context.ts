import type { EventContext } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { runs } from './runs.table.ts'

/** The correlation and trace of a fact about a run. The reporter may have a trace of its own; otherwise the trace of the run counts. */
export function aboutRun(rows: Rows, runId: string, told?: string): EventContext {
  const traceparent = told ?? rows.hot(runs).get(runId)?.traceparent
  return traceparent == null ? { correlation_id: runId } : { correlation_id: runId, traceparent }
}

/**
 * The same for an event of a controller. Its cause is the event that last changed the row on which it decides, which is the
 * `row_version` of the row.
 */
export function becauseOf(rows: Rows, row: { readonly run_id: string; readonly row_version: string }): EventContext {
  return { ...aboutRun(rows, row.run_id), causation_id: row.row_version }
}
