import { z } from 'zod'
import { count, id, partitionKey } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate } from '../../model/event.ts'
import { backfillSubject } from '../subjects.ts'
import { backfills } from './backfills.table.ts'

/** The partitions, in a few bytes however many there are. */
const partitionSelector = z.discriminatedUnion('type', [
  z.object({ type: z.literal('range'), start: id, end: id }),
  z.object({ type: z.literal('explicit'), partition_keys: z.array(id).min(1).max(10_000) }),
  z.object({ type: z.literal('filter'), filters: z.record(id, id) }),
  z.object({ type: z.literal('missing') }),
  z.object({ type: z.literal('failed') }),
  z.object({ type: z.literal('stale') }),
  /** Exactly these (asset, partition) pairs: what retry-failed makes. */
  z.object({
    type: z.literal('pairs'),
    pairs: z
      .array(z.tuple([id, partitionKey]))
      .min(1)
      .max(10_000),
  }),
])

const payload = z.object({
  backfill_id: id,
  client_request_id: id,
  asset_selection: z.array(id).min(1).max(10_000),
  partition_selector: partitionSelector,
  graph_version: id.nullish(),
  total_partitions: count,
  chunk_size: z.number().int().min(1).max(100_000),
  max_concurrent_runs: z.number().int().min(1).max(10_000),
  parent_backfill_id: id.nullish(),
})

export const BackfillCreated = defineEvent({
  type: 'BackfillCreated',
  version: 1,
  doc: 'A user asked for a range of partitions to be materialized.',
  payload,
  idempotencyKey: (backfill) =>
    backfill.parent_backfill_id
      ? `backfill_retry:${backfill.parent_backfill_id}:${backfill.client_request_id}`
      : `backfill_create:${backfill.client_request_id}`,
  dedup: 'key',
  about: (backfill) => ({ owner: 'backfills', id: backfill.backfill_id }),
  fold({ event, at, payload: backfill, rows, wake }) {
    if (rows.hot(backfills).get(backfill.backfill_id) !== undefined) return duplicate
    rows.hot(backfills).insert({
      backfill_id: backfill.backfill_id,
      client_request_id: backfill.client_request_id,
      asset_selection: backfill.asset_selection,
      partition_selector: backfill.partition_selector,
      graph_version: backfill.graph_version ?? null,
      total_partitions: backfill.total_partitions,
      total_chunks: Math.ceil(backfill.total_partitions / backfill.chunk_size),
      chunk_size: backfill.chunk_size,
      max_concurrent_runs: backfill.max_concurrent_runs,
      state: 'PENDING',
      state_version: 1,
      state_changed_by: null,
      planned_chunks: 0,
      succeeded_chunks: 0,
      failed_chunks: 0,
      cancelled_chunks: 0,
      cancel_requested_at: null,
      parent_backfill_id: backfill.parent_backfill_id ?? null,
      created_at: at,
      finished_at: null,
      row_version: event.event_id,
    })
    wake(backfillSubject(backfill.backfill_id))
    return applied
  },
})
