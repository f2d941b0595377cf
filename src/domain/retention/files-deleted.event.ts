import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, waitFor } from '../../model/event.ts'
import { removalSubject } from '../subjects.ts'
import { pendingRemovals } from './pending-removals.table.ts'

export const FilesDeleted = defineEvent({
  type: 'FilesDeleted',
  version: 1,
  doc: 'The files of removed values are gone.',
  payload: z.object({ removal_id: id }),
  idempotencyKey: ({ removal_id }) => `files_deleted:${removal_id}`,
  dedup: 'key',
  publishedWithOthers: true,
  fold({ payload: { removal_id }, rows }) {
    if (rows.hot(pendingRemovals).get(removal_id) === undefined) return waitFor(removalSubject(removal_id))
    rows.hot(pendingRemovals).remove(removal_id)
    return applied
  },
})
