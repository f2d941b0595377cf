import type { Transitions } from '../../lib/transitions.ts'
import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'
import type { PartitionDefinition } from '../../partitions/definition.ts'
import type { PartitionSelector } from './partition-selector.ts'

export const backfillStates = ['PENDING', 'RUNNING', 'PAUSED', 'SUCCEEDED', 'FAILED', 'CANCELLED'] as const
export type BackfillState = (typeof backfillStates)[number]

const transitions: Transitions<BackfillState> = {
  PENDING: ['RUNNING', 'CANCELLED'],
  RUNNING: ['PAUSED', 'SUCCEEDED', 'FAILED', 'CANCELLED'],
  PAUSED: ['RUNNING', 'CANCELLED'],
  SUCCEEDED: [],
  FAILED: [],
  CANCELLED: [],
}
export const canMove = (from: BackfillState, to: BackfillState): boolean => transitions[from].includes(to)
export const isBackfillOver = (state: BackfillState): boolean => transitions[state].length === 0

/** Assets that are made together, chunk by chunk: each chunk has the same positions of all of them, as far as they are asked for. */
export interface Stage {
  readonly assets: readonly string[]
  /** How all of them are partitioned; null for assets without partitions. */
  readonly partitions: PartitionDefinition | null
  readonly chunk_size: number
  /** Positions that any of them is asked for. */
  readonly positions: number
}

export interface ActiveChunk {
  readonly chunk_index: number
  readonly run_id: string
  /** The request of its run. Another request for the same chunk, which was decided by an older state, makes no run. */
  readonly request_fingerprint: string
}

/** Long enough for a client that repeats a request; older repetitions find it changed since. */
const KEPT_REQUESTS = 20

/** A cancellation that counted: the first, and one that asked for more. */
export interface CancelRequest {
  readonly event_id: string
  readonly at: number
  readonly cancel_runs: boolean
}

/** Partitions of an asset that were not taken; 0 if it has none that are meant. */
export interface LeftOutPartitions {
  readonly asset_key: string
  readonly partitions: number
  readonly why: string
}

/** A request that changed something, so that its repetition changes nothing. */
interface ChangeRequest {
  readonly request_id: string
  readonly event_id: string
  readonly at: number
}

export const backfills = defineTable({
  name: 'backfills',
  doc: 'One row per backfill: what it covers and its progress.',
  key: ['backfill_id'],
  storage: { kind: 'hot', sealedWith: 'backfills' },
  columns: {
    backfill_id: col.string('The backfill.'),
    client_request_id: col.string('Names the request: the same id again is the same backfill.'),
    asset_selection: col.strings('Assets, in graph order.'),
    partition_selector: col.json<PartitionSelector>('Which partitions, as they were asked for.'),
    graph_version: col.optional(col.string('The definitions the selector was read with.')),
    as_of: col.timestamp('The moment that decides which partitions there are: later ones do not belong to the backfill.'),
    dynamic_keys: col.optional(
      col.json<Readonly<Record<string, readonly string[]>>>('Keys that dynamic sets had at that moment.'),
    ),
    stages: col.json<readonly Stage[]>('Assets that are made together, in graph order, and the size of their chunks.'),
    total_partitions: col.int('Partitions covered, counted for each asset.'),
    total_chunks: col.int('Chunks that cover them.'),
    max_concurrent_runs: col.int('Runs at a time.'),
    priority: col.int('Priority of its runs; a larger number is more urgent.'),
    newest_first: col.boolean('True if the last partitions are made first.'),
    skip_existing: col.boolean('True if partitions that existed already were left out.'),
    stop_after_failures: col.optional(col.int('Failed chunks after which it plans no more; null if any number may fail.')),
    created_by: col.string('Who asked for it.'),
    state: col.oneOf(backfillStates, 'The state of the backfill.'),
    state_version: col.int('Increases with every change of state.'),
    state_changed_at: col.timestamp('When it got this state.'),
    state_changed_by: col.optional(col.string('Who changed it last; null if nobody asked for it.')),
    state_reason: col.optional(col.string('Why.')),
    settings_version: col.optional(col.int('Increases with every change of its settings; null until the first.')),
    change_requests: col.json<readonly ChangeRequest[]>('The last requests that changed its state or its settings.'),
    planned_chunks: col.int('Chunks planned so far.'),
    succeeded_chunks: col.int('Chunks whose run succeeded.'),
    failed_chunks: col.int('Chunks whose run failed.'),
    skipped_chunks: col.int('Chunks without a run, because what they need failed or is made by another run.'),
    cancelled_chunks: col.int('Chunks whose run was cancelled.'),
    active_chunks: col.json<readonly ActiveChunk[]>('Chunks whose runs have not ended.'),
    succeeded_partitions: col.int('Partitions that were materialized, counted for each asset.'),
    failed_partitions: col.int('Partitions that failed.'),
    skipped_partitions: col.int('Partitions that were skipped, because what they need failed or another run was making them.'),
    cancelled_partitions: col.int('Partitions of runs that were cancelled.'),
    cancel_requested_at: col.optional(col.timestamp('When cancellation was requested.')),
    cancel_requested_by: col.optional(col.string('Who requested it.')),
    cancel_reason: col.optional(col.string('The reason they gave.')),
    cancel_runs: col.optional(col.boolean('True if runs that have started are cancelled too.')),
    cancel_requests: col.optional(
      col.json<readonly CancelRequest[]>('The request to cancel it, and a later one that asks to cancel its runs too.'),
    ),
    left_out: col.optional(col.json<readonly LeftOutPartitions[]>('What of the selected assets it does not cover, and why.')),
    parent_backfill_id: col.optional(col.string('The backfill whose failures this one retries.')),
    created_at: col.timestamp('When it was requested.'),
    finished_at: col.optional(col.timestamp('When it ended.')),
    alerted_at: col.optional(col.timestamp('When the first alert about its end was raised; null if none was.')),
  },
  listed: { at: 'created_at', filters: ['state', 'asset_selection'] },
  ended: (backfill) =>
    isBackfillOver(backfill.state) ? { state: backfill.state, at: backfill.finished_at ?? backfill.created_at } : undefined,
})
export type BackfillRow = Row<typeof backfills>

/** The last requests, this one among them, in an order that does not depend on which was heard of first. */
export const withRequest = ({ change_requests }: Readonly<BackfillRow>, request: ChangeRequest): readonly ChangeRequest[] =>
  [...change_requests, request].sort((a, b) => (a.event_id < b.event_id ? -1 : 1)).slice(-KEPT_REQUESTS)

/**
 * True if it has made everything that nobody else was making: no chunk failed or was cancelled. Partitions are skipped because of such a
 * chunk, or because another run makes them, which is no failure.
 */
export const hasSucceeded = ({
  planned_chunks,
  total_chunks,
  failed_chunks,
  cancelled_chunks,
}: Readonly<BackfillRow>): boolean => planned_chunks === total_chunks && failed_chunks === 0 && cancelled_chunks === 0

/** True if so many chunks have failed that it plans no more. */
export const hasFailedTooOften = ({ stop_after_failures, failed_chunks }: Readonly<BackfillRow>): boolean =>
  stop_after_failures !== null && failed_chunks >= stop_after_failures
