import { z } from 'zod'
import { count, fingerprint, id, runKey } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored, waitFor } from '../../model/event.ts'
import { packSpans, unpackSpans } from '../../partitions/spans.ts'
import { backfillSubject } from '../subjects.ts'
import { editKnown, raiseVersion } from '../typed-rows.ts'
import { backfillChunks } from './backfill-chunks.table.ts'
import { backfills, isBackfillOver } from './backfills.table.ts'
import { countOutcomes, endChunk, type OutcomesOfAsset, type SomePartitions } from './chunk-outcome.ts'
import { pairsOfChunk, placeOfChunk, positionsOfChunk } from './frozen-set.ts'

const somePositions = z.array(z.object({ asset_key: id, positions: z.array(z.number().int().min(0)).min(2) }))

export const BackfillChunkPlanned = defineEvent({
  type: 'BackfillChunkPlanned',
  version: 1,
  doc: 'The next chunk of a backfill shall run; its run request is in the same segment. Which partitions it has follows from its number.',
  payload: z.object({
    backfill_id: id,
    chunk_index: count,
    /** Of the backfill when this was decided. If it was paused, resumed or cancelled since, the chunk is decided on again. */
    state_version: z.number().int().min(2),
    /** Absent when nothing is left to run. */
    run: z.object({ run_key: runKey, run_id: id, request_fingerprint: fingerprint }).nullish(),
    /** What is left out because something that it needs failed in this backfill: positions by asset. */
    skipped: somePositions.nullish(),
    /** What is left out because another run was making something that it needs. */
    overlapped: somePositions.nullish(),
  }),
  idempotencyKey: (chunk) => `backfill_chunk:${chunk.backfill_id}:${chunk.chunk_index}`,
  dedup: 'structure',
  about: (chunk) => ({ owner: 'backfills', id: chunk.backfill_id }),
  ordered: [
    {
      with: ['BackfillStateChanged', 'BackfillCancelRequested'],
      when: (mine, other) => mine.backfill_id === other.backfill_id,
      why: 'A chunk is planned only while the backfill runs; what was decided before a pause or a cancellation and comes after it counts no more.',
    },
  ],
  fold({ event, at, payload: chunk, rows, wake }) {
    const { backfill_id, chunk_index, run, skipped, overlapped } = chunk
    const known = rows.hot(backfills).get(backfill_id)
    if (known === undefined) return waitFor(backfillSubject(backfill_id))
    if (chunk_index >= known.total_chunks) return ignored('no_such_chunk')
    if (chunk_index < known.planned_chunks) return duplicate
    if (isBackfillOver(known.state)) return ignored('backfill_over')
    if (known.cancel_requested_at !== null) return ignored('cancel_requested')
    if (chunk.state_version < known.state_version) return ignored('stale_state_version')
    // Chunks are planned in order, so that their number is enough to know that each was planned once.
    if (chunk.state_version > known.state_version || chunk_index > known.planned_chunks)
      return waitFor(backfillSubject(backfill_id))
    if (known.state !== 'RUNNING') return ignored('backfill_paused')

    const pairs = pairsOfChunk(rows, known, chunk_index)
    const backfill = editKnown(rows.hot(backfills), backfill_id)
    backfill.planned_chunks += 1
    raiseVersion(backfill, event.event_id)
    const total_partitions = [...pairs.values()].reduce((sum, { count: own }) => sum + own, 0)
    rows.cold(backfillChunks).merge({
      backfill_id,
      chunk_index,
      chunk_id: `${backfill_id}:${chunk_index}`,
      asset_keys: placeOfChunk(known, chunk_index).stage.assets,
      positions: packSpans(positionsOfChunk(rows, known, chunk_index)),
      total_partitions,
      run_key: run?.run_key ?? null,
      run_id: run?.run_id ?? null,
      request_fingerprint: run?.request_fingerprint ?? null,
      planned_at: at,
      row_version: event.event_id,
    })
    const outcomes = new Map<string, OutcomesOfAsset>()
    for (const { asset_key, positions } of skipped ?? []) outcomes.set(asset_key, { skipped: wholeSpans(positions) })
    for (const { asset_key, positions } of overlapped ?? [])
      outcomes.set(asset_key, { ...outcomes.get(asset_key), overlapped: wholeSpans(positions) })
    countOutcomes(rows, backfill, outcomes, event.event_id)
    if (run) backfill.active_chunks = [...backfill.active_chunks, { chunk_index, ...run }]
    else endChunk(rows, backfill, { chunk_index, outcome: 'SKIPPED', at, version: event.event_id, outcomes })
    wake(backfillSubject(backfill_id))
    return applied
  },
})

function wholeSpans(packed: readonly number[]): SomePartitions {
  const positions = unpackSpans(packed)
  return { count: positions.count, positions }
}
