import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'

export const chunkOutcomes = ['SUCCEEDED', 'FAILED', 'SKIPPED', 'CANCELLED'] as const
export type ChunkOutcome = (typeof chunkOutcomes)[number]

export const backfillChunks = defineTable({
  name: 'backfill_chunks',
  doc: 'One row per planned chunk of a backfill: its partitions, its run, and how it ended.',
  key: ['backfill_id', 'chunk_index'],
  // Its fold reads none of it: what is unfinished is in the row of the backfill, so that memory follows active chunks.
  storage: { kind: 'cold', merge: [] },
  columns: {
    backfill_id: col.string('The backfill.'),
    chunk_index: col.int('Place in the backfill, from 0.'),
    chunk_id: col.optional(col.string('{backfill_id}:{chunk_index}.')),
    asset_keys: col.optional(col.strings('Assets of this chunk.')),
    positions: col.optional(
      col.json<readonly number[]>('Its partitions. Positions as pairs: how many are left out, how many taken.'),
    ),
    total_partitions: col.optional(col.int('Its partitions, counted for each asset.')),
    run_key: col.optional(col.string('backfill:{backfill_id}:chunk:{chunk_index}; null for a chunk without a run.')),
    run_id: col.optional(col.string('The run of this chunk.')),
    request_fingerprint: col.optional(col.string('What the run is asked to do.')),
    planned_at: col.optional(col.timestamp('When it was planned.')),
    ended_at: col.optional(col.timestamp('When its run ended.')),
    outcome: col.optional(col.oneOf(chunkOutcomes, 'How its run ended; null until then. SKIPPED for a chunk without a run.')),
    succeeded_partitions: col.optional(col.int('Partitions that were materialized.')),
    failed_partitions: col.optional(col.int('Partitions that failed.')),
    skipped_partitions: col.optional(col.int('Partitions that were skipped.')),
    cancelled_partitions: col.optional(col.int('Partitions of a run that was cancelled.')),
  },
})
export type ChunkRow = Row<typeof backfillChunks>
