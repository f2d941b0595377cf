import { toIso } from '../../lib/time.ts'
import type { BackfillAssetRow } from '../backfills/backfill-assets.table.ts'
import { type BackfillRow, type BackfillState, hasFailedTooOften, isBackfillOver } from '../backfills/backfills.table.ts'
import { type Reason, reason, type WhyAnswer, type WhyVerdict } from './reasons.ts'

const verdicts: Readonly<Record<BackfillState, WhyVerdict>> = {
  PENDING: 'waits',
  RUNNING: 'runs',
  PAUSED: 'waits',
  SUCCEEDED: 'succeeded',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
}

/** As many runs and keys as fit into a line. */
const SHOWN = 3

/** Why a backfill waits, or ended as it did, and who asked for it. */
export function whyBackfill(backfill: Readonly<BackfillRow>, assets: readonly Readonly<BackfillAssetRow>[]): WhyAnswer {
  const { backfill_id, state, finished_at } = backfill
  return {
    subject: { kind: 'backfill', id: backfill_id, name: backfill_id, partition: null, message_id: null },
    verdict: verdicts[state],
    at: finished_at === null ? null : toIso(finished_at),
    timezone: null,
    because: [...nowOf(backfill), ...lostOf(assets), progressOf(backfill), ...nextOf(backfill), originOf(backfill)],
  }
}

/** What keeps it as it is. */
function nowOf(backfill: Readonly<BackfillRow>): Reason[] {
  const { state, active_chunks, max_concurrent_runs: most, failed_chunks: failed, stop_after_failures } = backfill
  const { cancel_requested_at: at, cancel_requested_by: by, cancel_reason } = backfill
  const cancelled = at === null ? [] : [reason('cancel_asked', { by, at: toIso(at), reason: cancel_reason })]
  const stopped = hasFailedTooOften(backfill)
    ? [reason('stopped_after_failures', { most: stop_after_failures ?? 0, failed })]
    : []
  const runs = active_chunks.slice(0, SHOWN).map(({ run_id }) => run_id)
  const underWay = runs.length === 0 ? [] : [reason('chunks_under_way', { run_ids: runs, count: active_chunks.length, most })]
  if (state !== 'PAUSED' || at !== null) return [...cancelled, ...stopped, ...underWay]
  const { state_changed_at, state_changed_by, state_reason } = backfill
  const facts = { by: state_changed_by, at: toIso(state_changed_at), reason: state_reason, is_everything: false }
  return [reason('paused', facts), ...underWay]
}

/** What of each asset was not made. */
const lostOf = (assets: readonly Readonly<BackfillAssetRow>[]): Reason[] =>
  assets.flatMap(({ asset_key, failed, failed_partitions, skipped, overlapped, skipped_partitions }) => {
    const partition_keys = failed.keys.slice(0, SHOWN)
    return [
      ...(failed_partitions > 0 ? [reason('partitions_failed', { asset_key, partition_keys, count: failed_partitions })] : []),
      ...(skipped_partitions > 0
        ? [
            reason('partitions_skipped', {
              asset_key,
              partition_keys: [...skipped.keys, ...overlapped.keys].slice(0, SHOWN),
              count: skipped_partitions,
            }),
          ]
        : []),
    ]
  })

function progressOf(backfill: Readonly<BackfillRow>): Reason {
  const { total_partitions: partitions, succeeded_partitions: succeeded, planned_chunks, total_chunks } = backfill
  const { failed_partitions, skipped_partitions, cancelled_partitions } = backfill
  const ended = succeeded + failed_partitions + skipped_partitions + cancelled_partitions
  return reason('backfill_progress', { ended, succeeded, partitions, planned_chunks, total_chunks })
}

function nextOf({ state, backfill_id, failed_partitions, cancel_requested_at }: Readonly<BackfillRow>): Reason[] {
  if (isBackfillOver(state) && failed_partitions > 0)
    return [reason('retry_with', { command: `servo backfills retry-failed ${backfill_id}` })]
  if (state !== 'PAUSED' || cancel_requested_at !== null) return []
  return [reason('resume_with', { command: `servo backfills resume ${backfill_id}` })]
}

function originOf({ parent_backfill_id, created_by: user, created_at }: Readonly<BackfillRow>): Reason {
  const at = toIso(created_at)
  return parent_backfill_id === null
    ? reason('asked_by_user', { user, at })
    : reason('asked_by_retry', { backfill_id: parent_backfill_id, user, at })
}
