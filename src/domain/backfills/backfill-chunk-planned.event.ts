import { z } from 'zod'
import { count, fingerprint, id, partitionKey, runKey } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored, waitFor } from '../../model/event.ts'
import { historyIndex } from '../../model/system-tables.ts'
import { runStates, runs } from '../runs/runs.table.ts'
import { backfillSubject } from '../subjects.ts'
import { editKnown, raiseVersion } from '../typed-rows.ts'
import { backfillChunks } from './backfill-chunks.table.ts'
import { backfills, isBackfillOver } from './backfills.table.ts'
import { moveChunk } from './chunk-state.ts'

export const BackfillChunkPlanned = defineEvent({
  type: 'BackfillChunkPlanned',
  version: 1,
  doc: 'The next chunk of a backfill shall run; its run request is in the same segment.',
  payload: z.object({
    backfill_id: id,
    chunk_index: count,
    partition_keys: z.array(partitionKey).min(1).max(100_000),
    run_key: runKey,
    run_id: id,
    request_fingerprint: fingerprint,
  }),
  idempotencyKey: (chunk) => `backfill_chunk:${chunk.backfill_id}:${chunk.chunk_index}`,
  dedup: 'structure',
  about: (chunk) => ({ owner: 'backfills', id: chunk.backfill_id }),
  reads: (chunk) => [{ table: historyIndex, key: ['runs', chunk.run_id] }],
  fold({ event, payload: chunk, rows, wake }) {
    const known = rows.hot(backfills).get(chunk.backfill_id)
    if (known === undefined) return waitFor(backfillSubject(chunk.backfill_id))
    if (rows.hot(backfillChunks).get(chunk.backfill_id, chunk.chunk_index) !== undefined) return duplicate
    if (isBackfillOver(known.state)) return ignored('backfill_over')
    if (chunk.chunk_index >= known.total_chunks) return ignored('no_such_chunk')

    const backfill = editKnown(rows.hot(backfills), chunk.backfill_id)
    backfill.planned_chunks += 1
    raiseVersion(backfill, event.event_id)
    rows.hot(backfillChunks).insert({
      backfill_id: chunk.backfill_id,
      chunk_index: chunk.chunk_index,
      chunk_id: `${chunk.backfill_id}:${chunk.chunk_index}`,
      partition_keys: chunk.partition_keys,
      run_key: chunk.run_key,
      run_id: chunk.run_id,
      request_fingerprint: chunk.request_fingerprint,
      state: 'PLANNED',
      row_version: event.event_id,
    })
    // The run may have been requested, or may even be over, before the event of its chunk is folded.
    const run = rows.hot(runs).get(chunk.run_id)
    const sealed = run === undefined ? rows.cold(historyIndex).lookup('runs', chunk.run_id) : undefined
    const state = run?.state ?? runStates.find((state) => state === sealed?.state)
    const version = run?.row_version ?? sealed?.row_version
    if (state !== undefined && version !== undefined)
      moveChunk(rows, chunk.backfill_id, chunk.chunk_index, chunk.run_id, state, version)
    wake(backfillSubject(chunk.backfill_id))
    return applied
  },
})
