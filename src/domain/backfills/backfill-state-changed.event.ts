import { z } from 'zod'
import { count, id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored, type Verdict, waitFor } from '../../model/event.ts'
import { backfillSubject } from '../subjects.ts'
import { editKnown, raiseVersion } from '../typed-rows.ts'
import {
  type BackfillRow,
  backfillStates,
  backfills,
  canMove,
  hasFailedTooOften,
  hasSucceeded,
  isBackfillOver,
  withRequest,
} from './backfills.table.ts'

const payload = z.object({
  backfill_id: id,
  from_state: z.enum(backfillStates),
  to_state: z.enum(backfillStates),
  /** One more than the version this change was decided on. */
  state_version: z.number().int().min(2),
  /** For an end: how many chunks had been planned when it was decided. */
  planned_chunks: count.nullish(),
  /** Absent when it follows from what happened. */
  changed_by: id.nullish(),
  request_id: id.nullish(),
  reason: z.string().max(4_096).nullish(),
})
type Change = z.infer<typeof payload>

export const BackfillStateChanged = defineEvent({
  type: 'BackfillStateChanged',
  version: 1,
  doc: 'A backfill moves from one state to the next.',
  payload,
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
    const refusal = isBackfillOver(change.to_state) ? endRefused(known, change) : changeRefused(known)
    if (refusal !== undefined) return refusal

    const backfill = editKnown(rows.hot(backfills), change.backfill_id)
    backfill.state = change.to_state
    backfill.state_version = change.state_version
    backfill.state_changed_at = at
    backfill.state_changed_by = change.changed_by ?? null
    backfill.state_reason = change.reason ?? null
    if (change.request_id != null) {
      backfill.change_requests = withRequest(backfill, { request_id: change.request_id, event_id: event.event_id, at })
    }
    if (isBackfillOver(change.to_state)) backfill.finished_at = at
    raiseVersion(backfill, event.event_id)
    wake(backfillSubject(change.backfill_id))
    return applied
  },
})

/** A backfill that is being cancelled neither pauses nor goes on. */
const changeRefused = ({ cancel_requested_at }: Readonly<BackfillRow>): Verdict | undefined =>
  cancel_requested_at === null ? undefined : ignored('cancel_requested')

/** Why a backfill does not end so, or not yet: an end that contradicts its chunks is refused, one that comes before them waits for them. */
function endRefused(known: Readonly<BackfillRow>, { to_state, planned_chunks, backfill_id }: Change): Verdict | undefined {
  // The end was decided before all chunks were seen; it is decided again when they are over.
  if (known.planned_chunks > (planned_chunks ?? known.planned_chunks)) return ignored('chunk_not_seen')
  const seen = planned_chunks ?? known.planned_chunks
  const isComplete = seen === known.total_chunks
  if (to_state === 'SUCCEEDED' && !isComplete) return ignored('chunks_unplanned')
  if (known.planned_chunks < seen || known.active_chunks.length > 0) return waitFor(backfillSubject(backfill_id))
  if (to_state === 'CANCELLED') return known.cancel_requested_at === null ? waitFor(backfillSubject(backfill_id)) : undefined
  if (to_state === 'SUCCEEDED') return hasSucceeded(known) ? undefined : ignored('chunks_failed')
  if (hasSucceeded(known)) return ignored('no_chunk_failed')
  return isComplete || hasFailedTooOften(known) ? undefined : ignored('chunks_unplanned')
}
