import { z } from 'zod'
import { toMs } from '../../lib/time.ts'
import { count, id, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored } from '../../model/event.ts'
import { editKnown } from '../typed-rows.ts'
import { staleAssets } from './stale-assets.table.ts'

export const AssetFreshnessNoticed = defineEvent({
  type: 'AssetFreshnessNoticed',
  version: 1,
  doc: 'An asset that an alert watches was found stale by its freshness policy, or fresh again.',
  payload: z.object({
    asset_key: id,
    as_of: timestamp,
    stale: z.boolean(),
    /** When it was first found stale; of an asset that is fresh again, when it had been. */
    stale_since: timestamp,
    partitions: count.default(0),
  }),
  idempotencyKey: ({ asset_key, as_of, stale }) => `freshness:${asset_key}:${as_of}:${stale}`,
  dedup: 'structure',
  publishedWithOthers: true,
  fold({ event, payload: { asset_key, stale, partitions, ...when }, rows }) {
    const as_of = toMs(when.as_of)
    const known = rows.hot(staleAssets).get(asset_key)
    const row = { asset_key, stale, partitions, as_of, stale_since: toMs(when.stale_since), row_version: event.event_id }
    if (known === undefined) rows.hot(staleAssets).insert(row)
    else if (known.as_of > as_of) return ignored('a later one is on record')
    else if (known.as_of === as_of && known.row_version <= event.event_id) return duplicate
    else Object.assign(editKnown(rows.hot(staleAssets), asset_key), row)
    return applied
  },
})
