import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, ignored } from '../../model/event.ts'
import { editKnown } from '../typed-rows.ts'
import { type RetentionStateRow, retentionState } from './retention-state.table.ts'

export const RetentionAdvanced = defineEvent({
  type: 'RetentionAdvanced',
  version: 1,
  doc: 'Retention has looked at the materializations of an asset up to this one, by this rule.',
  payload: z.object({
    asset_key: id,
    versions: z.number().int().min(1),
    days: z.number().int().min(0),
    passed_event_id: id,
    /** Counts for each asset. The rule may have changed in between, and then retention began anew: the later word counts. */
    turn: z.number().int().min(1),
  }),
  idempotencyKey: ({ asset_key, turn, versions, days, passed_event_id }) =>
    `retention:${asset_key}:${turn}:${versions}:${days}:${passed_event_id}`,
  // A key would be on record only in those orders in which the event changed something.
  dedup: 'structure',
  publishedWithOthers: true,
  fold({ event, payload: passed, rows }) {
    const known = rows.hot(retentionState).get(passed.asset_key)
    // Two leaders may have taken the same turn. Either would do, but not now one and now the other.
    if (known && compareTuples(partsOf(passed), partsOf(known)) <= 0) return ignored('a later one is on record')
    const row = { ...passed, row_version: event.event_id }
    if (known === undefined) rows.hot(retentionState).insert(row)
    else Object.assign(editKnown(rows.hot(retentionState), passed.asset_key), row)
    return applied
  },
})

const partsOf = ({ turn, versions, days, passed_event_id }: Omit<RetentionStateRow, 'asset_key' | 'row_version'>) =>
  [turn, versions, days, passed_event_id] as const

function compareTuples(a: ReturnType<typeof partsOf>, b: ReturnType<typeof partsOf>): number {
  for (const [i, part] of a.entries()) {
    const other = b[i] ?? part
    if (part !== other) return part < other ? -1 : 1
  }
  return 0
}
