import { shellWord } from '../../lib/process/shell-word.ts'
import { toIso } from '../../lib/time.ts'
import type { Row } from '../../model/table.ts'
import type { automationState } from '../automation/automation-state.table.ts'
import type { BackfillAssetRow } from '../backfills/backfill-assets.table.ts'
import { type BackfillRow, type BackfillState, hasFailedTooOften, isBackfillOver } from '../backfills/backfills.table.ts'
import { positionsOfPartitions } from '../backfills/chunk-work.ts'
import { setOfStage } from '../backfills/frozen-set.ts'
import { type Reason, reason, type WhyAnswer, type WhyVerdict } from './reasons.ts'
import { repeatCommand } from './repeat-backfill.ts'

const verdicts: Readonly<Record<BackfillState, WhyVerdict>> = {
  PENDING: 'waits',
  RUNNING: 'runs',
  PAUSED: 'waits',
  SUCCEEDED: 'succeeded',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
}

/** What keeps all backfills from planning chunks. */
export interface AutomationNow {
  /** Undefined where no server answers, which says nothing about one that runs later. */
  readonly isOn: boolean | undefined
  readonly everything: Readonly<Row<typeof automationState>> | undefined
}

/** Why a backfill that runs plans no more chunks, although it has some; undefined if it plans them. */
export function heldBy(
  backfill: Readonly<BackfillRow>,
  { isOn, everything }: AutomationNow = automationOn,
): Reason | undefined {
  const { state, planned_chunks, total_chunks, cancel_requested_at } = backfill
  if (isBackfillOver(state) || state === 'PAUSED' || cancel_requested_at !== null) return undefined
  if (planned_chunks === total_chunks || hasFailedTooOften(backfill)) return undefined
  if (isOn === false) return reason('automation_off', {})
  if (everything?.status !== 'PAUSED') return undefined
  const { status_changed_by: by, status_changed_at: at, status_reason } = everything
  return reason('paused', { by, at: at === null ? null : toIso(at), reason: status_reason, is_everything: true })
}

const automationOn: AutomationNow = { isOn: undefined, everything: undefined }

/** As many runs and keys as fit into a line. */
const SHOWN = 3

/** Why the first of its runs failed that did; without a task if it could not be planned. */
export interface FailedChunk {
  readonly run_id: string
  readonly task_key: string | null
  readonly error: string | null
}

/** Why a backfill waits, or ended as it did, and who asked for it. */
export function whyBackfill(
  backfill: Readonly<BackfillRow>,
  assets: readonly Readonly<BackfillAssetRow>[],
  failure: FailedChunk | undefined,
  automation?: AutomationNow,
): WhyAnswer {
  const { backfill_id, state, finished_at } = backfill
  const held = heldBy(backfill, automation)
  return {
    subject: { kind: 'backfill', id: backfill_id, name: backfill_id, partition: null, message_id: null },
    verdict: held === undefined ? verdicts[state] : 'waits',
    at: finished_at === null ? null : toIso(finished_at),
    timezone: null,
    because: [
      ...(held === undefined ? [] : [held]),
      ...nowOf(backfill),
      ...lostOf(backfill, assets),
      ...(failure === undefined ? [] : [reason('chunk_failed', { ...failure })]),
      progressOf(backfill),
      ...(failure === undefined ? [] : [reason('log_with', { command: logCommand(failure) })]),
      ...nextOf(backfill),
      originOf(backfill),
    ],
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

type Lost = 'failed' | 'skipped' | 'overlapped' | 'cancelled'

/** What of each asset was not made. */
function lostOf(backfill: Readonly<BackfillRow>, assets: readonly Readonly<BackfillAssetRow>[]): Reason[] {
  const some = (row: Readonly<BackfillAssetRow>, lost: Lost) => somePartitionsOf(backfill, row, lost)
  const failed = assets.filter((row) => row.failed_partitions > 0)
  const [only] = failed
  const isItself = backfill.cancel_requested_at === null
  const isOnlyCause = failed.length === 1 && backfill.cancelled_partitions === 0
  return assets.flatMap((row) => {
    const skipped = row.skipped_partitions > 0 ? some(row, 'skipped') : undefined
    const overlapped = row.skipped_partitions > 0 ? some(row, 'overlapped') : undefined
    const cause = only !== undefined && isOnlyCause ? some(only, 'failed') : null
    return [
      ...(row.failed_partitions > 0 ? [reason('partitions_failed', some(row, 'failed'))] : []),
      ...(isItself && row.cancelled_partitions > 0 ? [reason('partitions_cancelled', some(row, 'cancelled'))] : []),
      ...(skipped !== undefined && skipped.count > 0 ? [reason('partitions_skipped', { ...skipped, cause })] : []),
      ...(overlapped !== undefined && overlapped.count > 0 ? [reason('partitions_overlapped', overlapped)] : []),
    ]
  })
}

/** Partitions of an asset that share an outcome: the first of them, and how many there are. */
function somePartitionsOf(backfill: Readonly<BackfillRow>, row: Readonly<BackfillAssetRow>, lost: Lost) {
  const { asset_key } = row
  const stage = backfill.stages.find(({ assets }) => assets.includes(asset_key))
  const positions = positionsOfPartitions(backfill, row, [lost])
  const set = stage?.partitions == null ? undefined : setOfStage(backfill, stage)
  const shown = set === undefined ? 0 : Math.min(SHOWN, positions.count)
  const partition_keys = Array.from({ length: shown }, (_, i) => set?.at(positions.at(i)) ?? '')
  return { asset_key, partition_keys, count: lost === 'failed' ? row.failed_partitions : positions.count }
}

function progressOf(backfill: Readonly<BackfillRow>): Reason {
  const { total_partitions: partitions, planned_chunks, total_chunks } = backfill
  return reason('backfill_progress', {
    partitions,
    succeeded: backfill.succeeded_partitions,
    failed: backfill.failed_partitions,
    skipped: backfill.skipped_partitions,
    cancelled: backfill.cancelled_partitions,
    planned_chunks,
    total_chunks,
  })
}

function logCommand({ run_id, task_key }: FailedChunk): string {
  return `servo runs logs ${run_id}${task_key === null ? '' : ` --task ${shellWord(task_key)}`}`
}

function nextOf(backfill: Readonly<BackfillRow>): Reason[] {
  const { state, backfill_id, failed_partitions, cancel_requested_at } = backfill
  if (isBackfillOver(state)) {
    const { total_partitions, succeeded_partitions, skipped_partitions, cancelled_partitions } = backfill
    // What a run left undone that was cancelled by itself is retried with what failed.
    const retried = failed_partitions + (state === 'FAILED' ? cancelled_partitions : 0)
    const count = total_partitions - succeeded_partitions - skipped_partitions - retried
    return [
      ...(retried > 0 ? [reason('retry_with', { command: `servo backfills retry-failed ${backfill_id}` })] : []),
      ...(count > 0 ? [reason('continue_with', { count, command: repeatCommand(backfill) })] : []),
    ]
  }
  if (state !== 'PAUSED' || cancel_requested_at !== null) return []
  return [reason('resume_with', { command: `servo backfills resume ${backfill_id}` })]
}

function originOf({ parent_backfill_id, created_by: user, created_at }: Readonly<BackfillRow>): Reason {
  const at = toIso(created_at)
  return parent_backfill_id === null
    ? reason('asked_by_user', { user, at })
    : reason('asked_by_retry', { backfill_id: parent_backfill_id, user, at })
}
