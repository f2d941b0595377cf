import type { Rows } from '../../model/rows.ts'
import { isRunOver, type RunRow, type RunState } from '../runs/runs.table.ts'
import { backfillSubject } from '../subjects.ts'
import { raiseVersion } from '../typed-rows.ts'
import { backfillChunks, type ChunkState } from './backfill-chunks.table.ts'
import { backfills } from './backfills.table.ts'

export const chunkStateOf: Record<RunState, ChunkState> = {
  PENDING: 'PLANNED',
  RUNNING: 'RUNNING',
  SUCCEEDED: 'SUCCEEDED',
  FAILED: 'FAILED',
  CANCELLED: 'CANCELLED',
}

type ChunkCounter = 'succeeded_chunks' | 'failed_chunks' | 'cancelled_chunks'

const counterOf: Partial<Record<ChunkState, ChunkCounter>> = {
  SUCCEEDED: 'succeeded_chunks',
  FAILED: 'failed_chunks',
  CANCELLED: 'cancelled_chunks',
}

/** The run of a chunk changed: the chunk is what its run is, and its backfill counts it when it ends. */
export function moveChunkOfRun(rows: Rows, run: Readonly<RunRow>, wake: (subject: string) => void): void {
  const source = run.trigger_source_ref
  if (source.type !== 'backfill') return
  moveChunk(rows, source.backfill_id, source.chunk_index, run.run_id, run.state, run.row_version)
  // The end of a backfill waits for the ends of its chunks.
  if (isRunOver(run.state)) wake(backfillSubject(source.backfill_id))
}

export function moveChunk(
  rows: Rows,
  backfillId: string,
  chunkIndex: number,
  runId: string,
  runState: RunState,
  version: string,
): void {
  const known = rows.hot(backfillChunks).get(backfillId, chunkIndex)
  const state = chunkStateOf[runState]
  if (known === undefined || known.run_id !== runId || known.state === state) return
  const chunk = rows.hot(backfillChunks).edit(backfillId, chunkIndex)
  const backfill = rows.hot(backfills).edit(backfillId)
  if (chunk === undefined || backfill === undefined) return
  chunk.state = state
  const counter = counterOf[state]
  if (counter !== undefined) {
    raiseVersion(chunk, version)
    backfill[counter] += 1
    raiseVersion(backfill, version)
  }
}
