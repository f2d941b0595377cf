import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored, waitFor } from '../../model/event.ts'
import { backfillSubject } from '../subjects.ts'
import { editKnown, raiseVersion } from '../typed-rows.ts'
import { backfills, isBackfillOver } from './backfills.table.ts'

export const BackfillCancelRequested = defineEvent({
  type: 'BackfillCancelRequested',
  version: 1,
  doc: 'A user cancelled a backfill, or cancelled its runs after that. It is CANCELLED once none of its runs is active.',
  payload: z.object({
    backfill_id: id,
    requested_by: id,
    /** Runs that have started are cancelled too; those that have not are cancelled in any case. */
    cancel_runs: z.boolean().default(false),
    reason: z.string().max(4_096).nullish(),
  }),
  idempotencyKey: (cancel) => `backfill_cancel:${cancel.backfill_id}${cancel.cancel_runs ? ':runs' : ''}`,
  dedup: 'structure',
  about: (cancel) => ({ owner: 'backfills', id: cancel.backfill_id }),
  ordered: [
    {
      with: ['BackfillCancelRequested'],
      when: (mine, other) => mine.backfill_id === other.backfill_id,
      why: 'The first cancellation says who, when and why; a later one counts only if it asks for more.',
    },
    {
      with: ['BackfillStateChanged'],
      when: (mine, other) => mine.backfill_id === other.backfill_id,
      why: 'A cancellation after the end is too late, and a pause or its end after the cancellation as well.',
    },
  ],
  fold({ event, at, payload: cancel, rows, wake }) {
    const known = rows.hot(backfills).get(cancel.backfill_id)
    if (known === undefined) return waitFor(backfillSubject(cancel.backfill_id))
    if (isBackfillOver(known.state)) return ignored('backfill_over')
    const isFirst = known.cancel_requested_at === null
    // One that asks for more than the first counts too; who cancelled it, when and why stays as it was.
    if (!isFirst && (known.cancel_runs || !cancel.cancel_runs)) return duplicate
    const backfill = editKnown(rows.hot(backfills), cancel.backfill_id)
    if (isFirst) {
      backfill.cancel_requested_at = at
      backfill.cancel_requested_by = cancel.requested_by
      backfill.cancel_reason = cancel.reason ?? null
    }
    backfill.cancel_runs = cancel.cancel_runs
    const request = { event_id: event.event_id, at, cancel_runs: cancel.cancel_runs }
    backfill.cancel_requests = [...(backfill.cancel_requests ?? []), request]
    raiseVersion(backfill, event.event_id)
    wake(backfillSubject(cancel.backfill_id))
    return applied
  },
})
