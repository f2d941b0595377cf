import type { Rows } from '../../model/rows.ts'
import { type DispatchStatus, dispatchOutbox, dispatchRank } from './dispatch-outbox.table.ts'

export interface DispatchProgress {
  readonly status: DispatchStatus
  /** The number of the offer, from 1. */
  readonly offer?: number
}

/**
 * Moves a dispatch on. The largest (offer, status) stands, and a dispatch that a worker has begun stays so: in whatever order
 * these facts arrive, the row is the same.
 */
export function advanceDispatch(
  rows: Rows,
  fact: { run_id: string; task_key: string; attempt: number },
  { status, offer = 1 }: DispatchProgress,
  eventId: string,
): boolean {
  const { run_id, task_key, attempt } = fact
  const current = rows.hot(dispatchOutbox).get(run_id, task_key, attempt)
  if (current === undefined || current.status === 'ACKED') return false
  const offered = current.offer ?? 1
  const isLater = offer > offered || (offer === offered && dispatchRank(status) > dispatchRank(current.status))
  if (status !== 'ACKED' && !isLater) return false
  const dispatch = rows.hot(dispatchOutbox).edit(run_id, task_key, attempt)
  if (dispatch === undefined) return false
  dispatch.status = status
  dispatch.offer = status === 'ACKED' || offer === 1 ? null : offer
  dispatch.row_version = eventId
  return true
}
