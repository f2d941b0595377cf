import { z } from 'zod'
import { count, id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored, waitFor } from '../../model/event.ts'
import { backfillSubject } from '../subjects.ts'
import { editKnown, raiseVersion } from '../typed-rows.ts'
import { type BackfillRow, backfillStates, backfills, canMove, chunksOver, isBackfillOver } from './backfills.table.ts'

export const BackfillStateChanged = defineEvent({
  type: 'BackfillStateChanged',
  version: 1,
  doc: 'A backfill moves from one state to the next.',
  payload: z.object({
    backfill_id: id,
    from_state: z.enum(backfillStates),
    to_state: z.enum(backfillStates),
    /** One more than the version this change was decided on. */
    state_version: z.number().int().min(2),
    /** For an end: how many chunks had been planned when it was decided. */
    planned_chunks: count.nullish(),
    changed_by: id.nullish(),
  }),
  idempotencyKey: (change) => `backfill_state:${change.backfill_id}:${change.state_version}:${change.to_state}`,
  dedup: 'structure',
  about: (change) => ({ owner: 'backfills', id: change.backfill_id }),
  ordered: [
    {
      with: ['BackfillStateChanged'],
      when: (mine, other) => mine.backfill_id === other.backfill_id && mine.state_version === other.state_version,
      why: 'Compare-and-swap on the state version: of two changes of one state the first counts.',
    },
    {
      with: ['*'],
      when: (mine, other) => isBackfillOver(mine.to_state) && (other.backfill_id === mine.backfill_id || other.run_id != null),
      why: 'The end follows from the chunks and their runs; anything later is too late.',
    },
  ],
  fold({ event, at, payload: change, rows, wake }) {
    const known = rows.hot(backfills).get(change.backfill_id)
    if (known === undefined) return waitFor(backfillSubject(change.backfill_id))
    if (change.state_version === known.state_version && change.to_state === known.state) return duplicate
    if (change.state_version <= known.state_version) return ignored('stale_state_version')
    if (isBackfillOver(known.state)) return ignored('backfill_over')
    if (change.state_version > known.state_version + 1) return waitFor(backfillSubject(change.backfill_id))
    if (change.from_state !== known.state || !canMove(known.state, change.to_state)) return ignored('impossible_transition')
    // The end was decided before all chunks were seen; it is decided again when they are over.
    if (isBackfillOver(change.to_state) && known.planned_chunks > (change.planned_chunks ?? known.planned_chunks))
      return ignored('chunk_not_seen')
    if (isBackfillOver(change.to_state) && !haveChunksEnded(known, change.planned_chunks ?? 0))
      return waitFor(backfillSubject(change.backfill_id))

    const backfill = editKnown(rows.hot(backfills), change.backfill_id)
    backfill.state = change.to_state
    backfill.state_version = change.state_version
    backfill.state_changed_by = change.changed_by ?? null
    if (isBackfillOver(change.to_state)) backfill.finished_at = at
    raiseVersion(backfill, event.event_id)
    wake(backfillSubject(change.backfill_id))
    return applied
  },
})

/** A backfill ends when every chunk it planned has ended; an end that is folded before that waits for them. */
function haveChunksEnded(backfill: Readonly<BackfillRow>, plannedChunks: number): boolean {
  return backfill.planned_chunks >= plannedChunks && chunksOver(backfill) === backfill.planned_chunks
}
