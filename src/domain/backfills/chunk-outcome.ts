import { assert } from '../../lib/assert.ts'
import type { Rows } from '../../model/rows.ts'
import { difference, packSpans, type Spans, union, unpackSpans } from '../../partitions/spans.ts'
import { isRunOver, type RunRow } from '../runs/runs.table.ts'
import { backfillSubject } from '../subjects.ts'
import { type TaskRow, tasks } from '../tasks/tasks.table.ts'
import { editKnown, raiseVersion } from '../typed-rows.ts'
import { backfillAssets, type KeptPartitions } from './backfill-assets.table.ts'
import { backfillChunks, type ChunkOutcome } from './backfill-chunks.table.ts'
import { type BackfillRow, backfills } from './backfills.table.ts'
import { pairsOfChunk } from './frozen-set.ts'

/** What became of partitions of an asset, as far as it is known. Nobody asks which succeeded: the others did not. */
export interface OutcomesOfAsset {
  readonly succeeded?: number
  readonly failed?: SomePartitions
  readonly skipped?: SomePartitions
  readonly overlapped?: SomePartitions
  readonly cancelled?: SomePartitions
}

const counterOf = {
  SUCCEEDED: 'succeeded_chunks',
  FAILED: 'failed_chunks',
  SKIPPED: 'skipped_chunks',
  CANCELLED: 'cancelled_chunks',
} as const satisfies Record<ChunkOutcome, keyof BackfillRow>

/** The run of a chunk has ended, and with it the chunk. */
export function endChunkOfRun(rows: Rows, run: Readonly<RunRow>, wake: (subject: string) => void): void {
  const { trigger_source_ref: source, run_id, state } = run
  if (source.type !== 'backfill' || !isRunOver(state)) return
  const known = rows.hot(backfills).get(source.backfill_id)
  // A run is only made for a chunk that is active, and a backfill with an active chunk does not end.
  assert(known !== undefined, 'the backfill of a run that was going on is there')
  if (!known.active_chunks.some((chunk) => chunk.run_id === run_id)) return
  const backfill = editKnown(rows.hot(backfills), source.backfill_id)
  const outcomes = outcomesOfRun(rows, backfill, source.chunk_index, run)
  countOutcomes(rows, backfill, outcomes, run.row_version)
  const outcome = state === 'SUCCEEDED' || state === 'FAILED' ? state : 'CANCELLED'
  const { chunk_index } = source
  endChunk(rows, backfill, {
    chunk_index,
    outcome,
    at: run.finished_at ?? run.requested_at,
    version: run.row_version,
    outcomes,
  })
  backfill.active_chunks = backfill.active_chunks.filter((chunk) => chunk.run_id !== run_id)
  wake(backfillSubject(source.backfill_id))
}

interface EndedChunk {
  readonly chunk_index: number
  readonly outcome: ChunkOutcome
  readonly at: number
  readonly version: string
  readonly outcomes: ReadonlyMap<string, OutcomesOfAsset>
}

export function endChunk(rows: Rows, backfill: BackfillRow, { chunk_index, outcome, at, version, outcomes }: EndedChunk): void {
  backfill[counterOf[outcome]] += 1
  raiseVersion(backfill, version)
  const all = [...outcomes.values()]
  const counted = (of: (one: OutcomesOfAsset) => number): number => all.reduce((sum, one) => sum + of(one), 0)
  const total = [...pairsOfChunk(rows, backfill, chunk_index).values()].reduce((sum, { count }) => sum + count, 0)
  const succeeded = counted((one) => one.succeeded ?? 0)
  const failed = counted((one) => one.failed?.count ?? 0)
  const cancelled = counted((one) => one.cancelled?.count ?? 0)
  rows.cold(backfillChunks).merge({
    backfill_id: backfill.backfill_id,
    chunk_index,
    outcome,
    ended_at: at,
    succeeded_partitions: succeeded,
    failed_partitions: failed,
    // Some were skipped when the chunk was planned, others by its run.
    skipped_partitions: total - succeeded - failed - cancelled,
    cancelled_partitions: cancelled,
    row_version: version,
  })
}

/** Adds what became of partitions to the counts of their assets and of the backfill. */
export function countOutcomes(
  rows: Rows,
  backfill: BackfillRow,
  outcomes: ReadonlyMap<string, OutcomesOfAsset>,
  version: string,
): void {
  for (const [key, { succeeded = 0, failed, skipped, overlapped, cancelled }] of outcomes) {
    const asset = editKnown(rows.hot(backfillAssets), backfill.backfill_id, key)
    const skips = (skipped?.count ?? 0) + (overlapped?.count ?? 0)
    for (const row of [asset, backfill]) {
      row.succeeded_partitions += succeeded
      row.failed_partitions += failed?.count ?? 0
      row.skipped_partitions += skips
      row.cancelled_partitions += cancelled?.count ?? 0
      raiseVersion(row, version)
    }
    asset.failed = joined(asset.failed, failed)
    asset.skipped = joined(asset.skipped, skipped)
    asset.overlapped = joined(asset.overlapped, overlapped)
    asset.cancelled = joined(asset.cancelled, cancelled)
  }
}

function joined(known: KeptPartitions, more: SomePartitions | undefined): KeptPartitions {
  if (more === undefined || more.count === 0) return known
  const { positions, keys = [] } = more
  return {
    positions: positions === undefined ? known.positions : packSpans(union([unpackSpans(known.positions), positions])),
    keys: keys.length === 0 ? known.keys : [...new Set([...known.keys, ...keys])].sort(),
  }
}

/**
 * KeptPartitions that share an outcome: a whole chunk by its positions, a part of one by keys. A fold cannot turn one into the other, because the zones
 * of time that windows depend on change from one release of Node to the next, and the same facts must give the same rows.
 */
export interface SomePartitions {
  readonly count: number
  readonly positions?: Spans
  readonly keys?: readonly string[]
}

/** What the run of a chunk made of its partitions. */
function outcomesOfRun(
  rows: Rows,
  backfill: Readonly<BackfillRow>,
  index: number,
  run: Readonly<RunRow>,
): ReadonlyMap<string, OutcomesOfAsset> {
  const outcomes = new Map<string, OutcomesOfAsset>()
  const asked = new Map(
    [...pairsOfChunk(rows, backfill, index)].map(([key, pairs]) => {
      const { skipped, overlapped } = rows.hot(backfillAssets).get(backfill.backfill_id, key) ?? {}
      const left = difference(pairs, unpackSpans(skipped?.positions ?? []))
      return [key, difference(left, unpackSpans(overlapped?.positions ?? []))]
    }),
  )
  if (run.state === 'SUCCEEDED' && run.tasks_skipped === 0) {
    for (const [key, { count }] of asked) outcomes.set(key, { succeeded: count })
    return outcomes
  }
  const tasksOf = Map.groupBy(rows.hot(tasks).under(run.run_id), ({ asset_key }) => asset_key ?? '')
  for (const [key, all] of asked) outcomes.set(key, outcomesOfTasks(rows, run, tasksOf.get(key) ?? [], all))
  return outcomes
}

function outcomesOfTasks(rows: Rows, run: Readonly<RunRow>, own: readonly Readonly<TaskRow>[], all: Spans): OutcomesOfAsset {
  const whole = { count: all.count, positions: all }
  // Nothing of a run that could not be planned has begun.
  if (run.error !== null) return { failed: whole }
  let left = all.count
  const take = (is: (task: Readonly<TaskRow>) => boolean): SomePartitions => {
    const keys = own.filter(is).flatMap(({ partition_key, partition_keys }) => partition_keys ?? [partition_key ?? ''])
    const count = Math.min(left, keys.length)
    left -= count
    return count === all.count ? whole : { count, keys: keys.slice(0, count) }
  }
  const failed = take(({ state }) => state === 'FAILED')
  const overlapped = take((task) => task.state === 'SKIPPED' && isOverlap(rows, task))
  const skipped = take((task) => task.state === 'SKIPPED' && !isOverlap(rows, task))
  const { count: succeeded } = take(({ state }) => state === 'SUCCEEDED')
  const ended = { failed, skipped, overlapped }
  if (run.state === 'SUCCEEDED') return { ...ended, succeeded: succeeded + left }
  // Cancelled before it was planned, it has no tasks.
  if (own.length === 0) return { cancelled: whole }
  const cancelled = take(({ state }) => state === 'CANCELLED')
  return { ...ended, succeeded, cancelled: { ...cancelled, count: cancelled.count + left } }
}

/** True if another run was making the partition of a skipped task, or one that it needs. */
const isOverlap = (rows: Rows, { run_id, overlap_run_id, cause_task_key }: Readonly<TaskRow>): boolean =>
  overlap_run_id !== null || (cause_task_key !== null && rows.hot(tasks).get(run_id, cause_task_key)?.overlap_run_id != null)
