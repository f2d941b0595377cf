import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

const chunkStates = ['PLANNED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED'] as const
export type ChunkState = (typeof chunkStates)[number]

export const backfillChunks = defineTable({
  name: 'backfill_chunks',
  doc: 'One row per chunk of a backfill. Its state follows its run.',
  key: ['backfill_id', 'chunk_index'],
  storage: { kind: 'hot', sealedWith: 'backfills' },
  columns: {
    backfill_id: col.string('The backfill.'),
    chunk_index: col.int('Position, from 0.'),
    chunk_id: col.string('{backfill_id}:{chunk_index}.'),
    partition_keys: col.strings('Partitions of this chunk.'),
    run_key: col.string('backfill:{backfill_id}:chunk:{chunk_index}.'),
    run_id: col.string('The run of this chunk.'),
    request_fingerprint: col.string('What the run is asked to do.'),
    state: col.oneOf(chunkStates, 'PLANNED until the run starts.'),
  },
})
