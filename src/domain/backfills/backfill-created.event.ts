import { z } from 'zod'
import { toMs } from '../../lib/time.ts'
import { count, fingerprint, id, partitionKey, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored } from '../../model/event.ts'
import { partitionDefinition } from '../../partitions/definition.ts'
import { isPackedSet, unpackSet } from '../../partitions/packed-set.ts'
import { union } from '../../partitions/spans.ts'
import { backfillSubject } from '../subjects.ts'
import { backfillAssets, noPartitions } from './backfill-assets.table.ts'
import { backfillRequests, requestKey } from './backfill-requests.table.ts'
import { backfills, type Stage } from './backfills.table.ts'
import { chunksOf } from './frozen-set.ts'
import { partitionSelector } from './partition-selector.ts'

/** As many runs as are asked for at once. */
const concurrentRuns = z.number().int().min(1).max(1_000)
/** As many as anybody reads. */
export const MAX_LEFT_OUT = 1_000
const place = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)

const stage = z.object({
  assets: z
    .array(
      z.object({
        asset_key: id,
        /** Pairs of numbers: how many positions are left out, how many are taken; or these squeezed into text. */
        positions: z.union([
          z
            .array(place)
            .min(2)
            .max(200_000)
            .refine((numbers) => numbers.length % 2 === 0, 'must be pairs'),
          z.string().refine(isPackedSet, 'must be a packed set'),
        ]),
        /** Stands for how it is made from others of the backfill. */
        links: id.nullish(),
      }),
    )
    .min(1)
    .max(10_000),
  partitions: partitionDefinition.nullish(),
  chunk_size: z.number().int().min(1).max(10_000),
})

const payload = z.object({
  backfill_id: id,
  client_request_id: id,
  /** Of what was asked for, before anything was worked out: a repeated request has the same. */
  request_fingerprint: fingerprint,
  partition_selector: partitionSelector,
  /** The partitions are those that there were at this moment, by the definitions in the stages. */
  as_of: timestamp,
  dynamic_keys: z.record(id, z.array(partitionKey)).nullish(),
  /** Assets that are made together, each stage after those it needs. */
  stages: z.array(stage).min(1).max(10_000),
  graph_version: id.nullish(),
  max_concurrent_runs: concurrentRuns,
  priority: z.number().int().min(-1_000).max(1_000).default(0),
  newest_first: z.boolean().default(false),
  skip_existing: z.boolean().default(false),
  stop_after_failures: z.number().int().min(1).nullish(),
  created_by: id,
  parent_backfill_id: id.nullish(),
  left_out: z
    .array(z.object({ asset_key: id, partitions: count, why: z.string().max(200) }))
    .max(MAX_LEFT_OUT)
    .nullish(),
})
export type NewBackfill = z.input<typeof payload>

export const BackfillCreated = defineEvent({
  type: 'BackfillCreated',
  version: 1,
  doc: 'A user asked for many partitions to be materialized. Which ones is settled here, as spans of positions.',
  payload,
  idempotencyKey: (backfill) =>
    backfill.parent_backfill_id
      ? `backfill_retry:${backfill.parent_backfill_id}:${backfill.client_request_id}`
      : `backfill_create:${backfill.client_request_id}`,
  dedup: 'structure',
  // Its first chunks may be thousands of tasks, which nobody who creates a backfill wants to wait for.
  answeredFirst: true,
  about: (backfill) => ({ owner: 'backfills', id: backfill.backfill_id }),
  reads: (backfill) => [
    { table: backfillRequests, key: [requestKey(backfill.client_request_id, backfill.parent_backfill_id)] },
  ],
  ordered: [
    {
      with: ['BackfillCreated'],
      when: (mine, other) =>
        mine.backfill_id === other.backfill_id ||
        requestKey(mine.client_request_id, mine.parent_backfill_id) ===
          requestKey(other.client_request_id, other.parent_backfill_id),
      why: 'The first request under an id makes the backfill; a later one for something else is a conflict.',
    },
  ],
  fold({ event, at, payload: backfill, rows, wake }) {
    const request_key = requestKey(backfill.client_request_id, backfill.parent_backfill_id)
    const known = rows.cold(backfillRequests).lookup(request_key)
    if (known !== undefined)
      return known.request_fingerprint === backfill.request_fingerprint ? duplicate : ignored('request_reused')
    if (rows.hot(backfills).get(backfill.backfill_id) !== undefined) return ignored('backfill_id_reused')

    const { backfill_id, request_fingerprint } = backfill
    const created = { created_at: at, created_event_id: event.event_id, row_version: event.event_id }
    rows.cold(backfillRequests).merge({ request_key, backfill_id, request_fingerprint, ...created })
    let total_partitions = 0
    const stages = backfill.stages.map(({ assets, partitions = null, chunk_size }): Stage => {
      for (const { asset_key, positions, links = null } of assets) {
        const own = unpackSet(positions).count
        total_partitions += own
        rows.hot(backfillAssets).insert({
          backfill_id,
          asset_key,
          positions,
          links,
          total_partitions: own,
          succeeded_partitions: 0,
          failed_partitions: 0,
          skipped_partitions: 0,
          cancelled_partitions: 0,
          failed: noPartitions,
          skipped: noPartitions,
          overlapped: noPartitions,
          cancelled: noPartitions,
          row_version: event.event_id,
        })
      }
      const all = union(assets.map(({ positions }) => unpackSet(positions)))
      return { assets: assets.map(({ asset_key }) => asset_key), partitions, chunk_size, positions: all.count }
    })
    rows.hot(backfills).insert({
      backfill_id,
      client_request_id: backfill.client_request_id,
      asset_selection: stages.flatMap(({ assets }) => assets),
      partition_selector: backfill.partition_selector,
      graph_version: backfill.graph_version ?? null,
      as_of: toMs(backfill.as_of),
      dynamic_keys: backfill.dynamic_keys ?? null,
      stages,
      total_partitions,
      total_chunks: stages.reduce((sum, stage) => sum + chunksOf(stage), 0),
      max_concurrent_runs: backfill.max_concurrent_runs,
      priority: backfill.priority,
      newest_first: backfill.newest_first,
      skip_existing: backfill.skip_existing,
      stop_after_failures: backfill.stop_after_failures ?? null,
      created_by: backfill.created_by,
      state: 'PENDING',
      state_version: 1,
      state_changed_at: at,
      state_changed_by: null,
      state_reason: null,
      settings_version: null,
      change_requests: [],
      planned_chunks: 0,
      succeeded_chunks: 0,
      failed_chunks: 0,
      skipped_chunks: 0,
      cancelled_chunks: 0,
      active_chunks: [],
      succeeded_partitions: 0,
      failed_partitions: 0,
      skipped_partitions: 0,
      cancelled_partitions: 0,
      cancel_requested_at: null,
      cancel_requested_by: null,
      cancel_reason: null,
      cancel_runs: null,
      cancel_requests: null,
      left_out: backfill.left_out ?? null,
      parent_backfill_id: backfill.parent_backfill_id ?? null,
      created_at: at,
      finished_at: null,
      alerted_at: null,
      row_version: event.event_id,
    })
    wake(backfillSubject(backfill_id))
    return applied
  },
})
