import type { AcceptedFacts, ReportBody, WipeBody } from '../../api/asset-contract.ts'
import { MaterializationReported } from '../../domain/partitions/materialization-reported.event.ts'
import { PartitionWiped } from '../../domain/partitions/partition-wiped.event.ts'
import { partitionsOfAsset } from '../../domain/planning/partitions-of-asset.ts'
import { knownAsset } from '../../domain/selection/selected-assets.ts'
import { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { MINUTE_MS, toIso, toMs } from '../../lib/time.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import { readKey } from '../../partitions/key.ts'
import { type Knowledge, record } from './knowledge.ts'

/** Records that partitions were made outside Servo. */
export async function recordReport(known: Knowledge, assetKey: string, body: ReportBody, user: string): Promise<AcceptedFacts> {
  if (body.partition !== undefined && body.partitions !== undefined) throw twice()
  const asked = body.partitions ?? (body.partition === undefined ? undefined : [body.partition])
  const keys = keysMeant(known, assetKey, asked)
  const { code_version, data_version, metadata, materialization_id } = body
  const request_id = body.report_id ?? known.mintId()
  const materialized_at = toIso(pastMoment(body.materialized_at, known.now()))
  const several = known.graph.partitions().of(assetKey).dimensions.length > 0
  const events = keys.map((partition_key) => {
    const report_id = idFor(request_id, partition_key)
    const fact = { report_id, asset_key: assetKey, partition_key, materialized_at, reported_by: user }
    const more = {
      // A materialization needs an id; without one it has that of its report.
      materialization_id: materialization_id ?? report_id,
      ...(several && { partition_values: { ...readKey(partition_key) } }),
      ...(code_version !== undefined && { code_version }),
      ...(data_version !== undefined && { data_version }),
      ...(metadata !== undefined && { metadata }),
    }
    return newEvent(MaterializationReported, { ...fact, ...more }, { actor: user })
  })
  return await acceptFacts(known, assetKey, keys, request_id, events)
}

/** Records that materializations do not count any more. */
export async function recordWipe(known: Knowledge, assetKey: string, body: WipeBody, user: string): Promise<AcceptedFacts> {
  const keys = keysMeant(known, assetKey, body.partitions)
  const request_id = body.request_id ?? known.mintId()
  const events = keys.map((partition_key) => {
    const fact = { request_id: idFor(request_id, partition_key), asset_key: assetKey, partition_key, wiped_by: user }
    return newEvent(PartitionWiped, { ...fact, reason: body.reason ?? null }, { actor: user })
  })
  return await acceptFacts(known, assetKey, keys, request_id, body.dry_run ? [] : events)
}

function keysMeant(known: Knowledge, assetKey: string, asked: readonly string[] | undefined): string[] {
  const { graph } = known
  knownAsset(graph.get().graph, assetKey)
  return partitionsOfAsset(assetKey, asked, graph.partitions())
}

async function acceptFacts(
  known: Knowledge,
  assetKey: string,
  keys: readonly string[],
  request_id: string,
  events: readonly NewEvent[],
): Promise<AcceptedFacts> {
  const { event_id, news } = events.length === 0 ? { event_id: null, news: 0 } : await record(known, events)
  const partitions = { count: keys.length, first: keys[0] ?? null, last: keys.at(-1) ?? null }
  return { asset_key: assetKey, partitions, request_id, accepted_event_id: event_id, created: news > 0 }
}

/** Leaves room for the id of the request in front. */
const MAX_KEY = 256

/** Each partition of a request is a fact with an id of its own, which is the same when the request is repeated. */
const idFor = (requestId: string, partitionKey: string): string =>
  partitionKey === '' ? requestId : `${requestId}:${partitionKey.length > MAX_KEY ? sha256(partitionKey) : partitionKey}`

/** Clocks of two machines may differ by this much; a time that is a little ahead of ours counts as now. */
const CLOCK_SKEW_MS = MINUTE_MS

function pastMoment(text: string | undefined, now: number): number {
  const moment = text === undefined ? now : toMs(text)
  const refuse = (code: string, why: string): never => {
    throw new ServoError('invalid', code, why, {
      hint: 'Write the time in UTC, such as 2025-01-15T10:00:00Z, or omit it for the current time.',
      facts: { field: 'materialized_at' },
    })
  }
  if (moment > now + CLOCK_SKEW_MS) refuse('in_the_future', `${text} is in the future: it is ${toIso(now)} now`)
  if (moment <= 0) refuse('before_1970', `${text} is before 1970`)
  return Math.min(moment, now)
}

const twice = (): ServoError =>
  new ServoError('invalid', 'bad_body', 'the request has both `partition` and `partitions`', {
    hint: 'Keep one of them; `partitions` takes several.',
    facts: { field: 'partitions' },
  })
