import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'
import type { PackedSet } from '../../partitions/packed-set.ts'

/** Positions of whole chunks, as `packSpans` writes them, and keys of others. */
export interface KeptPartitions {
  readonly positions: readonly number[]
  readonly keys: readonly string[]
}

const some = (doc: string) =>
  col.json<KeptPartitions>(`${doc} Whole chunks by positions, as pairs: how many are left out, how many taken.`)

export const backfillAssets = defineTable({
  name: 'backfill_assets',
  doc: 'One row per asset of a backfill: which of its partitions belong to it, and what became of them.',
  key: ['backfill_id', 'asset_key'],
  storage: { kind: 'hot', sealedWith: 'backfills' },
  columns: {
    backfill_id: col.string('The backfill.'),
    asset_key: col.string('The asset.'),
    positions: col.json<PackedSet>(
      'Its partitions in the backfill. Positions as pairs: how many are left out, how many taken; as text if these are many.',
    ),
    links: col.optional(col.string('Stands for how it was made from others of the backfill when that was created.')),
    total_partitions: col.int('How many these are.'),
    succeeded_partitions: col.int('Partitions that were materialized.'),
    failed_partitions: col.int('Partitions that failed.'),
    skipped_partitions: col.int('Partitions that were skipped.'),
    cancelled_partitions: col.int('Partitions of runs that were cancelled.'),
    failed: some('Those that failed.'),
    skipped: some('Those that were skipped because what they need failed.'),
    overlapped: some('Those that were skipped because another run was making them, or what they need.'),
    cancelled: some('Those whose runs were cancelled.'),
  },
})

export const noPartitions: KeptPartitions = { positions: [], keys: [] }
export type BackfillAssetRow = Row<typeof backfillAssets>
