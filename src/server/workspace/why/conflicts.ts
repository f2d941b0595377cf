import type { ConflictPage, ConflictQuery } from '../../../api/automation/why-contract.ts'
import type { RequestSummary } from '../../../domain/runs/request-summary.ts'
import { runKeyConflicts } from '../../../domain/runs/run-key-conflicts.table.ts'
import { evaluationOf } from '../../../domain/runs/trigger.ts'
import { sensorDefinitions } from '../../../domain/sensors/sensor-definitions.table.ts'
import { sensorMessageConflicts } from '../../../domain/sensors/sensor-message-conflicts.table.ts'
import {
  ADVICE_FOR_MESSAGE,
  adviceForRunKey,
  type Conflict,
  type ConflictingRequest,
  differencesOf,
  givenKey,
} from '../../../domain/why/conflicts.ts'
import { comesAfter, type ListPlace } from '../../../engine/history/list-history.ts'
import { quoteText } from '../../../lib/sql/sql-text.ts'
import { toIso, toMs } from '../../../lib/time.ts'
import type { Row } from '../../../model/table.ts'
import type { Knowledge } from '../knowledge.ts'
import { cursorOf, placeOfCursor } from '../newest-page.ts'
import { newestRows } from './newest-rows.ts'
import { originOfRequest } from './origins.ts'

type KeyConflict = Row<typeof runKeyConflicts>
type BodyConflict = Row<typeof sensorMessageConflicts>

/** What both tables have in common. */
interface Detected {
  readonly detected_at: number
  readonly conflicting_event_id: string
}

/** The place of a conflict in the list: when it was found, and by which event. */
const placeOf = ({ detected_at, conflicting_event_id }: Detected): ListPlace => ({ at: detected_at, id: conflicting_event_id })

/** Conflicts over run keys and over the ids of messages, the newest first. */
export async function listConflicts(known: Knowledge, query: ConflictQuery): Promise<ConflictPage> {
  const { limit, cursor, since, until } = query
  const after = cursor === undefined ? undefined : placeOfCursor(cursor)
  const question = {
    where: [
      since !== undefined && `detected_at >= ${quoteText(since)}::timestamptz`,
      until !== undefined && `detected_at < ${quoteText(until)}::timestamptz`,
      after !== undefined && `detected_at <= ${quoteText(toIso(after.at))}::timestamptz`,
      after !== undefined &&
        `(detected_at < ${quoteText(toIso(after.at))}::timestamptz or conflicting_event_id < ${quoteText(after.id)})`,
    ].filter((one) => one !== false),
    orderBy: 'detected_at desc, conflicting_event_id desc',
    limit: limit + 1,
    isAsked: (row: Detected) =>
      (since === undefined || row.detected_at >= toMs(since)) &&
      (until === undefined || row.detected_at < toMs(until)) &&
      (after === undefined || comesAfter(after, placeOf(row))),
    comesFirst: (a: Detected, b: Detected) => comesAfter(placeOf(a), placeOf(b)),
  }
  const ofKeys = await newestRows(known, runKeyConflicts, {
    ...question,
    keyColumns: ['run_key', 'conflicting_fingerprint'],
    keyOf: ({ run_key, conflicting_fingerprint }) => [run_key, conflicting_fingerprint],
  })
  const ofBodies = await newestRows(known, sensorMessageConflicts, {
    ...question,
    keyColumns: ['sensor_id', 'message_id', 'body_hash'],
    keyOf: ({ sensor_id, message_id, body_hash }) => [sensor_id, message_id, body_hash],
  })
  const all = [
    ...ofKeys.map((row) => ({ place: placeOf(row), show: () => shownKey(known, row) })),
    ...ofBodies.map((row) => ({ place: placeOf(row), show: async () => shownBody(known, row) })),
  ].sort((a, b) => (comesAfter(a.place, b.place) ? -1 : 1))
  const page = all.slice(0, limit)
  const last = page.at(-1)
  const conflicts: Conflict[] = []
  for (const { show } of page) conflicts.push(await show())
  return { conflicts, next_cursor: last === undefined || all.length <= limit ? null : cursorOf(last.place) }
}

const sensorName = (known: Knowledge, id: string): string => known.rows().hot(sensorDefinitions).get(id)?.sensor_name ?? id

async function shownKey(known: Knowledge, row: KeyConflict): Promise<Conflict> {
  const { run_key, existing_request, conflicting_request } = row
  const request = conflicting_request ?? existing_request
  const asker = request === null ? undefined : evaluationOf(request.source)
  return {
    kind: 'run_key',
    detected_at: toIso(row.detected_at),
    event_id: row.conflicting_event_id,
    run_key,
    key: givenKey(run_key),
    sensor_name: asker === undefined ? null : sensorName(known, asker.sensor_id),
    run_id: row.existing_run_id,
    first: existing_request && (await shownRequest(known, existing_request)),
    later: conflicting_request && (await shownRequest(known, conflicting_request)),
    differs: differencesOf(existing_request, conflicting_request),
    advice: adviceForRunKey(run_key, conflicting_request),
  }
}

async function shownRequest(known: Knowledge, request: RequestSummary): Promise<ConflictingRequest> {
  const { source: _, requested_at, ...what } = request
  return { origin: await originOfRequest(known, request), requested_at: toIso(requested_at), ...what }
}

function shownBody(known: Knowledge, row: BodyConflict): Conflict {
  const { sensor_id, message_id, body_hash, body_size } = row
  return {
    kind: 'message',
    detected_at: toIso(row.detected_at),
    event_id: row.conflicting_event_id,
    sensor_id,
    sensor_name: sensorName(known, sensor_id),
    message_id,
    eval_id: row.accepted_eval_id,
    first: { body_hash: row.accepted_body_hash, body_size: row.accepted_body_size },
    later: { body_hash, body_size },
    advice: ADVICE_FOR_MESSAGE,
  }
}
