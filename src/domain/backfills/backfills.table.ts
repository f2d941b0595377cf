import type { Transitions } from '../../lib/transitions.ts'
import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'

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

export const backfills = defineTable({
  name: 'backfills',
  doc: 'One row per backfill: what it covers and its progress.',
  key: ['backfill_id'],
  storage: { kind: 'hot', sealedWith: 'backfills' },
  columns: {
    backfill_id: col.string('The backfill.'),
    client_request_id: col.string('Names the request: the same id again is the same backfill.'),
    asset_selection: col.strings('Assets, in graph order.'),
    partition_selector: col.json('Which partitions: a selector, never a list of a million keys.'),
    graph_version: col.optional(col.string('The definitions the selector is read with.')),
    total_partitions: col.int('Partitions covered.'),
    total_chunks: col.int('Chunks that cover them.'),
    chunk_size: col.int('Partitions per run.'),
    max_concurrent_runs: col.int('Runs at a time.'),
    state: col.oneOf(backfillStates, 'The state of the backfill.'),
    state_version: col.int('Increases with every change of state.'),
    state_changed_by: col.optional(col.string('Who changed it last.')),
    planned_chunks: col.int('Chunks planned so far.'),
    succeeded_chunks: col.int('Chunks whose run succeeded.'),
    failed_chunks: col.int('Chunks whose run failed.'),
    cancelled_chunks: col.int('Chunks whose run was cancelled.'),
    cancel_requested_at: col.optional(col.timestamp('When cancellation was requested.')),
    parent_backfill_id: col.optional(col.string('The backfill whose failures this one retries.')),
    created_at: col.timestamp('When it was requested.'),
    finished_at: col.optional(col.timestamp('When it ended.')),
  },
  ended: (backfill) =>
    isBackfillOver(backfill.state) ? { state: backfill.state, at: backfill.finished_at ?? backfill.created_at } : undefined,
})
export type BackfillRow = Row<typeof backfills>

export const chunksOver = (backfill: Readonly<BackfillRow>): number =>
  backfill.succeeded_chunks + backfill.failed_chunks + backfill.cancelled_chunks
