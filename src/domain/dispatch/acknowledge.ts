import type { Rows } from '../../model/rows.ts'
import { type DispatchStatus, dispatchOutbox, dispatchRank } from './dispatch-outbox.table.ts'

/** Moves a dispatch to a later status; an earlier one that arrives late changes nothing. */
export function advanceDispatch(
  rows: Rows,
  fact: { run_id: string; task_key: string; attempt: number },
  status: DispatchStatus,
  eventId: string,
): boolean {
  const { run_id, task_key, attempt } = fact
  const current = rows.hot(dispatchOutbox).get(run_id, task_key, attempt)
  if (current === undefined || dispatchRank(current.status) >= dispatchRank(status)) return false
  const dispatch = rows.hot(dispatchOutbox).edit(run_id, task_key, attempt)
  if (dispatch === undefined) return false
  dispatch.status = status
  dispatch.row_version = eventId
  return true
}
