import { z } from 'zod'
import { id, partitionKey } from '../../model/envelope.ts'
import { applied, defineEvent } from '../../model/event.ts'
import { orderOf } from './order.ts'
import { partitionStatus } from './partition-status.table.ts'

export const PartitionWiped = defineEvent({
  type: 'PartitionWiped',
  version: 1,
  doc: 'A partition counts as never materialized from now on.',
  payload: z.object({
    request_id: id,
    asset_key: id,
    partition_key: partitionKey.default(''),
    wiped_by: id,
    reason: z.string().max(4_096).nullish(),
  }),
  idempotencyKey: (wipe) => `partition_wipe:${wipe.request_id}`,
  dedup: 'key',
  fold({ event, at, payload: wipe, rows }) {
    rows.cold(partitionStatus).merge({
      asset_key: wipe.asset_key,
      partition_key: wipe.partition_key,
      wiped_at: at,
      wiped_order: orderOf(event, at),
      wiped_event_id: event.event_id,
      wiped_by: wipe.wiped_by,
      wiped_reason: wipe.reason ?? null,
      row_version: event.event_id,
    })
    return applied
  },
})
