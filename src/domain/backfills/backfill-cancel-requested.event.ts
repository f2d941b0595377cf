import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored, waitFor } from '../../model/event.ts'
import { backfillSubject } from '../subjects.ts'
import { raiseVersion } from '../typed-rows.ts'
import { backfills, isBackfillOver } from './backfills.table.ts'

export const BackfillCancelRequested = defineEvent({
  type: 'BackfillCancelRequested',
  version: 1,
  doc: 'A user cancelled a backfill. It is CANCELLED once none of its runs is active.',
  payload: z.object({ backfill_id: id, requested_by: id }),
  idempotencyKey: (cancel) => `backfill_cancel:${cancel.backfill_id}`,
  dedup: 'structure',
  about: (cancel) => ({ owner: 'backfills', id: cancel.backfill_id }),
  ordered: [
    {
      with: ['BackfillStateChanged'],
      when: (mine, other) => mine.backfill_id === other.backfill_id && isBackfillOver(other.to_state),
      why: 'A cancellation after the end is too late.',
    },
  ],
  fold({ event, at, payload: cancel, rows }) {
    const known = rows.hot(backfills).get(cancel.backfill_id)
    if (known === undefined) return waitFor(backfillSubject(cancel.backfill_id))
    if (isBackfillOver(known.state)) return ignored('backfill_over')
    if (known.cancel_requested_at !== null) return duplicate
    const backfill = rows.hot(backfills).edit(cancel.backfill_id)
    if (backfill !== undefined) {
      backfill.cancel_requested_at = at
      raiseVersion(backfill, event.event_id)
    }
    return applied
  },
})
