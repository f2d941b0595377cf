import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, ignored } from '../../model/event.ts'
import { retentionState } from './retention-state.table.ts'

export const RetentionAdvanced = defineEvent({
  type: 'RetentionAdvanced',
  version: 1,
  doc: 'Retention has looked at the materializations of an asset up to this one, by this rule.',
  payload: z.object({
    asset_key: id,
    versions: z.number().int().min(1),
    days: z.number().int().min(0),
    passed_event_id: id,
  }),
  idempotencyKey: ({ asset_key, versions, days, passed_event_id }) =>
    `retention:${asset_key}:${versions}:${days}:${passed_event_id}`,
  dedup: 'structure',
  publishedWithOthers: true,
  fold({ event, payload: passed, rows }) {
    const known = rows.hot(retentionState).edit(passed.asset_key)
    // The rule may have changed in between, and then it began anew: the later word counts, whichever arrives first.
    if (known !== undefined && known.row_version >= event.event_id) return ignored('a later one is on record')
    if (known === undefined) rows.hot(retentionState).insert({ ...passed, row_version: event.event_id })
    else Object.assign(known, passed, { row_version: event.event_id })
    return applied
  },
})
